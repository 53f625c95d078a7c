/* Sums of each channel over all pixels, of int8. */
#include <stdint.h>

typedef int8_t nn_summand;
#include "nn_moving_sums.h"

void nn_row_sums_s8(const int8_t *in, int32_t pixels, int32_t channels, int32_t *sums) {
    for (int32_t c = 0; c < channels; c++) {
        sums[c] = 0;
    }
    nn_add_pixels(sums, (const nn_summand *)(const void *)in, pixels, channels);
}
