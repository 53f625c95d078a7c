/* The submitter's side of the benchmark, as the official submitter_implemented.h declares it. */
#ifndef TH_H
#define TH_H

#include <stdarg.h>
#include <stddef.h>

#define MAX_DB_INPUT_SIZE (96 * 96 * 3)
#define TH_VENDOR_NAME_STRING "buildtool"
#define EE_MSG_TIMESTAMP "m-lap-us-%lu\r\n"
#define EE_MSG_TIMESTAMP_MODE "m-timestamp-mode-performance\r\n"

/* network.c */
void th_final_initialize(void);
void th_load_tensor(void); /* the loaded buffer becomes the network's input */
void th_infer(void);       /* one inference */
void th_results(void);     /* prints the outputs of the last inference */
void th_pre(void);
void th_post(void);

/* text.c: %d, %u, %lu, %x, %s, %c and a width with leading zeros, such as %02x */
void th_printf(const char *format, ...);
int th_vprintf(const char *format, va_list values);
size_t th_strnlen(const char *text, size_t most);

/* board.c or host.c */
void th_serialport_initialize(void);
void th_timestamp_initialize(void);
void th_timestamp(void); /* prints the time in microseconds */
void th_command_ready(char volatile *command);
char th_getchar(void);
void th_putchar(char c);   /* not in the official interface */
void th_watch_clock(void); /* neither: called once an inference, so that no counter wraps unseen */

#endif
