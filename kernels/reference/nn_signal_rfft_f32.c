/* SignalRfft of float32. */
#include "nn_fft_float.h"

void nn_signal_rfft_f32(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out) {
    nn_fft_forward(geometry, constants, (const float *)(const void *)in, (float *)(void *)out);
}
