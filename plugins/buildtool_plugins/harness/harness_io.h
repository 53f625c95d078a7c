/* What the harness needs of a target: files, text, exit, and a call whose stack is measured.
 *
 * baremetal/harness_io.c has it by semihosting, host/harness_io.c by the C library.
 */
#ifndef HARNESS_IO_H
#define HARNESS_IO_H

#include <stdint.h>

/* Ends the program; 0 is success. */
__attribute__((noreturn)) void io_exit(int code);
void io_print(const char *text);

/* A handle, or -1. */
int io_open_read(const char *name);
int io_open_write(const char *name);
/* Bytes in the file, or -1. */
int32_t io_length(int handle);
/* The next read begins `offset` bytes behind the file's start; 0 if it can. */
int io_seek(int handle, uint32_t offset);
/* 0 if all bytes were transferred. */
int io_read(int handle, void *data, uint32_t bytes);
int io_write(int handle, const void *data, uint32_t bytes);
void io_close(int handle);

/* Calls function; the bytes of stack that it and what it calls wrote to, 0 if that is not known.
 * A frame's bytes that nobody writes are seen only if deeper ones were. */
uint32_t io_call_measured(void (*function)(void));

/* Copies weights, as a loader does that runs beside the core; memcpy if no target has its own. */
void io_load(void *to, const void *from, uint32_t bytes);

/* Asks for every access to [data, data + bytes) to be reported; 1 if so, and then the harness
 * keeps away from it, 0 if nobody watches. */
int io_forbid(void *data, uint32_t bytes);

#endif
