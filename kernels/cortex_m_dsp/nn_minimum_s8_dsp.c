/* MINIMUM of operands with all of the output's channels, four elements at a time; the plain kernel
 * does the rest. */
#include "nn_dsp_pixelwise.h"

NN_OUTLINE void smaller(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t count) {
    (void)plan;
    for (; count >= 4; count -= 4, a += 4, b += 4, out += 4) {
        nn_store4(out, nn_min8(nn_load4(a), nn_load4(b)));
    }
    for (; count > 0; count--) {
        const int32_t first = *a++, second = *b++;
        *out++ = (int8_t)nn_min(first, second);
    }
}

void nn_minimum_s8_dsp(const nn_view *in1, const nn_view *in2, const nn_view *out,
                       const nn_window *window) {
    if (in1->channels != out->channels || in2->channels != out->channels) {
        nn_minimum_s8(in1, in2, out, window);
    } else {
        nn_dsp_for_runs(smaller, NULL, in1, in2, out, window);
    }
}
