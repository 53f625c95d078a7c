/* SignalFftAutoScale: shifts samples to the left until the largest fills 16 bits. */
#include "nn_signal.h"

#include "nn_fixed.h"

/* The largest magnitude. That of -32768 is -32768, as in the library, so that any later sample is
 * larger. */
static int32_t largest_of(const int16_t *samples, int32_t count) {
    int32_t largest = 0;
    for (int32_t i = 0; i < count; i++) {
        if (samples[i] > largest) {
            largest = samples[i];
        } else if (-samples[i] > largest) {
            largest = (int16_t)-samples[i];
        }
    }
    return largest;
}

void nn_signal_auto_scale_s16(const nn_signal_count_geometry *geometry, const int8_t *in,
                              int8_t *const *outputs) {
    const int16_t *samples = (const int16_t *)(const void *)in;
    int16_t *scaled = (int16_t *)(void *)outputs[0];
    const int32_t largest = largest_of(samples, geometry->count);
    int32_t bits = 0;
    if (largest >= 0) {
        bits = largest == 0 ? 15 : nn_leading_zeros((uint32_t)largest) - 17;
    }
    for (int32_t i = 0; i < geometry->count; i++) {
        scaled[i] = (int16_t)(samples[i] * (1 << bits));
    }
    *(int32_t *)(void *)outputs[1] = bits;
}
