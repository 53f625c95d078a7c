/* The features of the last frames, in the order in which the network of words reads them. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdint.h>

/* Takes the features of a frame. Returns 1 if the network of words has new input. */
int history_add(const int8_t *frame);

/* The network's input: its frames, the oldest first. */
const int8_t *history_window(void);

#endif
