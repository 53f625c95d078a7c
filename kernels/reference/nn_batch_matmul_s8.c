/* BATCH_MATMUL: products of matrices. The second operand's zero point is taken off the sum:
 * sum(x * (y - zp)) = sum(x * y) - zp * sum(x), modulo 2^32 all along. */
#include <stdint.h>

typedef int8_t nn_element;
#include "nn_matmul.h"

static void block(const nn_matmul_geometry *g, const void *constants, const int8_t *x,
                  const int8_t *y, int8_t *out, int32_t count) {
    const nn_matmul_constants *c = (const nn_matmul_constants *)constants;
    int32_t sums[NN_MATMUL_COLUMNS] = {0}, total = 0;
    for (int32_t k = 0; k < g->inner; k++, x += g->x_step, y += g->y_step) {
        const int32_t value = *x - c->input1_zero_point;
        total += value;
        for (int32_t i = 0; i < count; i++) {
            sums[i] = nn_wrapping_add(sums[i], value * y[i * g->y_column]);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        const uint32_t zero = (uint32_t)total * (uint32_t)-c->input2_zero_point;
        const int32_t sum = nn_wrapping_add(sums[i], (int32_t)zero);
        const int32_t made = nn_requantise(sum, c->output_multiplier, c->output_shift);
        out[i] = (int8_t)nn_clamp(nn_wrapping_add(made, c->output_zero_point), -128, 127);
    }
}

void nn_batch_matmul_s8(const nn_matmul_geometry *geometry, const void *constants,
                        const nn_view *in1, const nn_view *in2, const nn_view *out) {
    nn_matmul(geometry, constants, in1, in2, out, block);
}
