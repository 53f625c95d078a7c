/* A window of features. A network that reads a frame, or a few, and keeps earlier ones itself, gets
 * each frame once; so does a network on a moving window, whose input is the frames of a hop. All
 * others get all frames of their window, which moves by a frame. */
#include "history.h"

#include <string.h>

#include "front.h"
#include "words.h"

#define FRAME FRONT_OUTPUT0_ELEMENTS
#define FRAMES (WORDS_INPUT0_ELEMENTS / FRAME)

NN_STATIC_ASSERT(WORDS_INPUT0_BYTES == FRAMES * FRAME, "the network reads whole frames of int8");

static int8_t window[FRAMES * FRAME];

int history_add(const int8_t *frame) {
#ifdef WORDS_STATE_BYTES
    static int there; /* frames */
    memcpy(window + there * FRAME, frame, FRAME);
    there = (there + 1) % FRAMES;
    return there == 0;
#else
    memmove(window, window + FRAME, sizeof window - FRAME);
    memcpy(window + sizeof window - FRAME, frame, FRAME);
    return 1;
#endif
}

const int8_t *history_window(void) {
    return window;
}
