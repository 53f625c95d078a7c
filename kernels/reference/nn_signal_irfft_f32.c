/* SignalIrfft of float32. */
#include "nn_fft_float.h"

void nn_signal_irfft_f32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                         int8_t *out, void *scratch) {
    float *samples = (float *)(void *)out;
    nn_fft_inverse(geometry, constants, (const float *)(const void *)in, samples, scratch);
    for (int32_t i = 0; i < geometry->frames * geometry->points; i++) {
        samples[i] /= (float)geometry->points;
    }
}
