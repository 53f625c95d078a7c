/* SignalIrfft of int16. */
#define NN_FFT_BITS 16
#include "nn_fft_fixed.h"

void nn_signal_irfft_s16(const nn_fft_geometry *geometry, const void *constants, const int8_t *in,
                         int8_t *out, void *scratch) {
    nn_fft_inverse(geometry, constants, (const nn_scalar *)(const void *)in,
                   (nn_scalar *)(void *)out, scratch);
}
