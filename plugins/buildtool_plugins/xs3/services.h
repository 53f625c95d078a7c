/* What a program asks the runner for: `kcall NUMBER`, arguments in r0 to r2, the result in r0. */
#ifndef XS3_SERVICES_H
#define XS3_SERVICES_H

#include "machine.h"

#include <stdio.h>

enum {
    SERVICE_EXIT,   /* r0: the exit code */
    SERVICE_PUT,    /* r0: a character, to standard output */
    SERVICE_OPEN,   /* r0: a file's name, r1: 1 to write; a handle, or -1 */
    SERVICE_CLOSE,  /* r0: a handle */
    SERVICE_LENGTH, /* r0: a handle; bytes, or -1 */
    SERVICE_SEEK,   /* r0: a handle, r1: bytes from the start; 0, or -1 */
    SERVICE_READ,   /* r0: a handle, r1: an address, r2: bytes; 0 if all were read, else -1 */
    SERVICE_WRITE,
    SERVICE_MARK,  /* r0: who issues from now on, see xs3_count */
    SERVICE_CLOCK, /* issue slots of this run, the lower 32 bits */
    SERVICE_PIECE, /* r0: 0 a call begins that threads share, 1 a piece begins, 2 it ends, 3 the
                      call ends */
    SERVICES
};

enum { SERVICE_DONE, SERVICE_ENDS, SERVICE_UNKNOWN };

#define SERVICE_FILES 8
#define SERVICE_NAME_BYTES 256

typedef struct {
    FILE *files[SERVICE_FILES];
} xs3_services;

typedef struct {
    xs3 *machine;
    uint32_t *r;
} services_of;

int32_t serve(xs3_services *s, const services_of *of, uint32_t number);
void services_close(xs3_services *s);
/* The program's memory, NULL where there is none. */
uint8_t *xs3_find(const xs3 *m, uint32_t address, uint32_t bytes, int32_t writes);

#endif
