/* The sound, which a microphone would give: 16,000 samples a second. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdint.h>

extern const int16_t samples[];
extern const int32_t sample_count;

#endif
