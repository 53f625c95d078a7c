/* The sums of a global pooling that is fed its input part by part. */
#include "nn_arith.h"

void nn_accumulate_s8(const nn_view *in, const nn_window *window, int32_t *sums) {
    if (window->y0 == 0 && window->x0 == 0) {
        for (int32_t c = 0; c < in->channels; c++) {
            sums[c] = 0;
        }
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *pixel = nn_pixel(in, y, x);
            for (int32_t c = 0; c < in->channels; c++) {
                sums[c] = nn_wrapping_add(sums[c], pixel[c]);
            }
        }
    }
}
