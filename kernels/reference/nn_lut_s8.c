/* Any function of one byte, by a table of its 256 results. */
#include "nn_arith.h"

void nn_lut_s8(const void *constants, const nn_view *in, const nn_view *out,
               const nn_window *window) {
    const uint8_t *table = (const uint8_t *)constants;
    const int32_t channels = out->channels;
    const int dense = nn_one_column(window) || (nn_dense(in) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t x = window->x0, run;
        for (; x < window->x1; x += run) {
            const int8_t *values = nn_pixel(in, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            run = nn_run(in, x, nn_run(out, x, dense ? window->x1 - x : 1));
            for (int32_t left = run * channels; left > 0; left--) {
                *result++ = (int8_t)table[(uint8_t)*values++];
            }
        }
    }
}
