/* EEMBC's side of the benchmark: commands from the host, and the buffer that they load.
 *
 * The names are those of the official internally_implemented.h, which may take this file's place.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define EE_FW_VERSION "ULPMark for tinyML Firmware V0.0.1"
#define EE_CMD_SIZE 80u /* characters of a command, without its terminator */
#define EE_CMD_TERMINATOR '%'

/* Initialises the th_ functions, and tells the host that it may send commands. */
void ee_benchmark_initialize(void);
/* Takes the next character from the host; calls th_command_ready at the end of a command. */
void ee_serial_callback(char c);
/* Runs a command, which is overwritten. */
void ee_serial_command_parser_callback(char *command);
/* Copies at most `most` bytes of what the host has loaded; returns how many. */
size_t ee_get_buffer(uint8_t *buffer, size_t most);

#endif
