/* BATCH_MATMUL of float32: products in order. */
#include "nn_float.h"

static float *product(const nn_matmul_geometry *g, const float *x, const float *y, float *out) {
    for (int32_t row = 0; row < g->rows; row++, x += g->x_row) {
        for (int32_t column = 0; column < g->columns; column++) {
            const float *a = x, *b = y + column * g->y_column;
            float sum = 0.0F;
            for (int32_t k = 0; k < g->inner; k++, a += g->x_step, b += g->y_step) {
                sum += *a * *b;
                NN_ONE_BY_ONE();
            }
            *out++ = sum;
        }
    }
    return out;
}

void nn_batch_matmul_f32(const nn_matmul_geometry *geometry, const nn_view *in1, const nn_view *in2,
                         const nn_view *out) {
    const nn_matmul_geometry *g = geometry;
    const float *x = (const float *)(const void *)in1->data;
    const float *y = (const float *)(const void *)in2->data;
    float *to = (float *)(void *)nn_out_data(out);
    int32_t index[NN_MAX_RANK] = {0};
    for (;;) {
        int32_t d = g->rank - 1;
        to = product(g, x, y, to);
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
