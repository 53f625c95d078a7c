/* FULLY_CONNECTED and BATCH_MATMUL of float32: products in order, then the bias. */
#include "nn_float.h"

void nn_fully_connected_f32(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window) {
    const nn_float_layer layer = nn_float_open(constants, out->channels);
    const int32_t inputs = in->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const float *values = nn_float_in(in, y, x), *weights = layer.weights;
            float *result = nn_float_out(out, y, x);
            for (int32_t c = 0; c < out->channels; c++, weights += inputs) {
                float sum = 0.0F;
                for (int32_t i = 0; i < inputs; i++) {
                    sum += values[i] * weights[i];
                    NN_ONE_BY_ONE();
                }
                result[c] = nn_float_finish(&layer, sum, c);
            }
        }
    }
}

void nn_batch_matmul_f32(const nn_matmul_geometry *geometry, const nn_view *in1, const nn_view *in2,
                         const nn_view *out) {
    const nn_matmul_geometry *g = geometry;
    const float *x = (const float *)(const void *)in1->data;
    const float *y = (const float *)(const void *)in2->data;
    float *result = (float *)(void *)nn_out_data(out);
    int32_t index[NN_MAX_RANK] = {0}, other[NN_MAX_RANK] = {0}, from = 0, beside = 0;
    do {
        for (int32_t r = 0; r < g->rows; r++) {
            for (int32_t c = 0; c < g->columns; c++) {
                const float *a = x + from + r * g->x_row, *b = y + beside + c * g->y_column;
                float sum = 0.0F;
                for (int32_t k = 0; k < g->inner; k++, a += g->x_step, b += g->y_step) {
                    sum += *a * *b;
                    NN_ONE_BY_ONE();
                }
                *result++ = sum;
            }
        }
        (void)nn_next(g->rank, g->size, other, g->y_stride, &beside);
    } while (nn_next(g->rank, g->size, index, g->x_stride, &from));
}
