/* A camera that sends its picture line by line, and has memory for two of them. */
#ifndef CAMERA_H
#define CAMERA_H

#include <stdint.h>

#define CAMERA_LINES 32
#define CAMERA_LINE_BYTES (32 * 3) /* red, green and blue of each pixel */

/* Begins a picture: its line 0 comes next. */
void camera_start(void);

/* Waits for the next line; it stays until camera_next. */
const uint8_t *camera_line(void);

/* Gives the memory of the line back to the camera. */
void camera_next(void);

#endif
