/* BATCH_MATMUL of int16: products of matrices, with sums of 64 bits. */
#include <stdint.h>

typedef int16_t nn_element;
#include "nn_matmul.h"
#include "nn_wide.h"

static void block(const nn_matmul_geometry *g, const void *constants, const int16_t *x,
                  const int16_t *y, int16_t *out, int32_t count) {
    const nn_matmul_constants *c = (const nn_matmul_constants *)constants;
    const int64_t half = (int64_t)1 << (c->output_shift - 1);
    int64_t sums[NN_MATMUL_COLUMNS] = {0};
    for (int32_t k = 0; k < g->inner; k++, x += g->x_step, y += g->y_step) {
        const int32_t value = *x;
        for (int32_t i = 0; i < count; i++) {
            sums[i] += value * y[i * g->y_column];
        }
    }
    for (int32_t i = 0; i < count; i++) {
        const int64_t product = sums[i] * c->output_multiplier + half;
        const int32_t scaled = (int32_t)(product >> c->output_shift);
        out[i] = (int16_t)nn_clamp(scaled, NN_WIDE_MIN, NN_WIDE_MAX);
    }
}

void nn_batch_matmul_s16(const nn_matmul_geometry *geometry, const void *constants,
                         const nn_view *in1, const nn_view *in2, const nn_view *out) {
    nn_matmul(geometry, constants, in1, in2, out, block);
}
