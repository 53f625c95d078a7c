/* The camera, as far as an emulator can have one: a picture that is computed. */
#include "camera.h"

static uint8_t lines[2][CAMERA_LINE_BYTES];
static volatile uint32_t arrived; /* counted by the interrupt */
static uint32_t taken;

/* On a board, the interrupt at the end of a line's transfer. */
static void line_interrupt(void) {
    uint8_t *line = lines[arrived % 2];
    for (uint32_t i = 0; i < CAMERA_LINE_BYTES; i++) {
        line[i] = (uint8_t)(arrived * 7U + i * i * 3U);
    }
    arrived = arrived + 1;
}

void camera_start(void) {
    arrived = 0;
    taken = 0;
}

const uint8_t *camera_line(void) {
    while (arrived == taken) {
        line_interrupt(); /* on a board: __WFI() */
    }
    return lines[taken % 2];
}

void camera_next(void) {
    taken++;
}
