/* Comparisons of float32, with broadcasting. */
#include "nn_float.h"

void nn_compare_f32(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window) {
    const int32_t truth = ((const nn_float_truth *)constants)->truth;
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const float *a = nn_float_in(in1, y, x), *b = nn_float_in(in2, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < out->channels; i++, a += step1, b += step2) {
                const int32_t order = *a < *b ? 0 : *a == *b ? 1 : *a > *b ? 2 : 3;
                result[i] = (int8_t)(truth >> order & 1);
                NN_ONE_BY_ONE();
            }
        }
    }
}
