/* SELECT_V2 between elements of float32, with broadcasting. */
#include "nn_float.h"

void nn_select_f32(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                   const nn_window *window) {
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1, step3 = in3->channels > 1;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *condition = nn_pixel(in1, y, x);
            const float *a = nn_float_in(in2, y, x), *b = nn_float_in(in3, y, x);
            float *result = nn_float_out(out, y, x);
            for (int32_t i = 0; i < out->channels; i++) {
                result[i] = *condition ? *a : *b;
                condition += step1;
                a += step2;
                b += step3;
            }
        }
    }
}
