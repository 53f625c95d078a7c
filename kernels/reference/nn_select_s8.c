/* SELECT_V2, with broadcasting: the byte of the second operand where the first is true, else of the
 * third. */
#include "nn_arith.h"

void nn_select_s8(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                  const nn_window *window) {
    const int32_t step1 = in1->channels > 1, step2 = in2->channels > 1, step3 = in3->channels > 1;
    const int32_t channels = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *condition = nn_pixel(in1, y, x);
            const int8_t *a = nn_pixel(in2, y, x), *b = nn_pixel(in3, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < channels; i++) {
                result[i] = *condition ? *a : *b;
                condition += step1;
                a += step2;
                b += step3;
            }
        }
    }
}
