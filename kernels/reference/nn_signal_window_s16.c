/* SignalWindow: samples times weights. */
#include "nn_signal.h"

#include "nn_fixed.h"

void nn_signal_window_s16(const nn_signal_window_geometry *geometry, const void *constants,
                          const int8_t *in, int8_t *out) {
    const int16_t *weights = constants, *sample = (const int16_t *)(const void *)in;
    int16_t *result = (int16_t *)(void *)out;
    for (int32_t frame = 0; frame < geometry->frames; frame++) {
        for (int32_t i = 0; i < geometry->samples; i++) {
            *result++ = (int16_t)nn_clamp((*sample++ * weights[i]) >> geometry->shift, INT16_MIN,
                                          INT16_MAX);
        }
    }
}
