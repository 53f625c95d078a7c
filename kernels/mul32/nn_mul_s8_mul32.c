/* MUL of operands with the output's channels; the plain kernel does the rest. A product of two
 * differences has 18 bits at most, so the factor's pieces serve. */
#include "nn_mul32.h"
#include "nn_mul32_scale.h"
#include "nn_pixelwise.h"

#define STEEPEST (-1) /* shifts that the pieces stand for */
#define FLATTEST (-11)

typedef struct {
    int32_t zero1, zero2, low, high; /* zero points as natural bytes */
    nn_mul32_factor factor;
} plan;

NN_OUTLINE void multiply(const void *constants, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t count) {
    const plan p = *(const plan *)constants;
    for (const int8_t *end = out + count; out != end; out++) {
        const int32_t product =
            (nn_mul32_natural(a++) - p.zero1) * (nn_mul32_natural(b++) - p.zero2);
        *out = (int8_t)nn_clamp(nn_mul32_scale(product, &p.factor, 1, 0), p.low, p.high);
    }
}

void nn_mul_s8_mul32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window) {
    const nn_mul_constants *c = (const nn_mul_constants *)constants;
    if (in1->channels != out->channels || in2->channels != out->channels ||
        c->output_multiplier < 0 || c->output_shift > STEEPEST || c->output_shift < FLATTEST) {
        nn_mul_s8(constants, in1, in2, out, window);
        return;
    }
    const plan p = {c->input1_zero_point + 128, c->input2_zero_point + 128, c->clamp_min,
                    c->clamp_max,
                    nn_mul32_split(c->output_multiplier, -c->output_shift, c->output_zero_point)};
    nn_for_runs(multiply, &p, in1, in2, out, window);
}
