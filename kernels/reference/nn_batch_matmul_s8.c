/* BATCH_MATMUL: products of matrices, four columns at a time. The second operand's zero point is
 * taken off the sum: sum(x * (y - zp)) = sum(x * y) - zp * sum(x), modulo 2^32 all along. */
#include "nn_arith.h"

#define COLUMNS 4

static void block(const nn_matmul_geometry *g, const nn_matmul_constants *c, const int8_t *x,
                  const int8_t *y, int8_t *out, int32_t count) {
    int32_t sums[COLUMNS] = {0}, total = 0;
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

static int8_t *product(const nn_matmul_geometry *g, const nn_matmul_constants *c, const int8_t *x,
                       const int8_t *y, int8_t *out) {
    for (int32_t row = 0; row < g->rows; row++, x += g->x_row, out += g->columns) {
        int32_t n = 0;
        for (; n + COLUMNS <= g->columns; n += COLUMNS) {
            block(g, c, x, y + n * g->y_column, out + n, COLUMNS);
        }
        for (; n < g->columns; n++) {
            block(g, c, x, y + n * g->y_column, out + n, 1);
        }
    }
    return out;
}

void nn_batch_matmul_s8(const nn_matmul_geometry *geometry, const void *constants,
                        const nn_view *in1, const nn_view *in2, const nn_view *out) {
    const nn_matmul_geometry *g = geometry;
    const nn_matmul_constants *c = (const nn_matmul_constants *)constants;
    int32_t index[NN_MAX_RANK] = {0};
    const int8_t *x = in1->data, *y = in2->data;
    int8_t *to = nn_out_data(out);
    for (;;) {
        int32_t d = g->rank - 1;
        to = product(g, c, x, y, to);
        for (; d >= 0; d--) {
            x += g->x_stride[d];
            y += g->y_stride[d];
            if (++index[d] < g->size[d]) {
                break;
            }
            x -= g->size[d] * g->x_stride[d];
            y -= g->size[d] * g->y_stride[d];
            index[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}
