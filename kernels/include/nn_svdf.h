/* The steps of an SVDF. How sums of products are computed says nn_rows.h, or the header of a family
 * that stands in its place: the file that includes this one includes it first.
 */
#ifndef NN_SVDF_H
#define NN_SVDF_H

#include "nn_recurrent.h"

/* Where the arrays of the constants begin; see nn_recurrent.h. */
typedef struct {
    const nn_svdf_constants *head;
    const int32_t *offsets, *biases;
    const int16_t *time;
    const int8_t *weights;
} nn_svdf_block;

static inline nn_svdf_block nn_svdf_open(const nn_svdf_geometry *g, const void *constants) {
    const int32_t features = g->units * g->rank;
    nn_svdf_block b;
    b.head = (const nn_svdf_constants *)constants;
    b.offsets = (const int32_t *)(const void *)(b.head + 1);
    b.biases = b.offsets + ((features + 3) & ~3);
    b.time = (const int16_t *)(const void *)(b.biases + ((g->units + 3) & ~3));
    b.weights = (const int8_t *)(b.time + ((features * g->memory + 7) & ~7));
    return b;
}

/* One image's output; its memory moves on by one step. */
static inline void nn_svdf_step(const nn_svdf_geometry *g, const nn_svdf_block *b,
                                const nn_rows_vector *x, int16_t *memory, int8_t *out) {
    const nn_svdf_constants c = *b->head;
    const int32_t features = g->units * g->rank;
    const int32_t *bias = b->biases;
    uint32_t sum = (uint32_t)*bias;
    int32_t left = g->rank; /* features of the unit to come */
    for (int32_t f = 0; f < features; f += 4) {
        const int32_t rows = nn_min(4, features - f);
        int32_t sums[4];
        nn_rows_times(sums, x, b->weights + nn_rows_matrix(f, g->inputs), rows, g->inputs,
                      c.general);
        for (int32_t i = 0; i < rows; i++) {
            const int32_t at = (f + i) * g->memory;
            const int32_t newest =
                nn_clamp(nn_requantise(nn_wrapping_add(sums[i], b->offsets[f + i]),
                                       c.feature_multiplier, c.feature_shift),
                         -32768, 32767);
            sum = nn_rows_over_time(memory + at, b->time + at, g->memory, newest, sum);
            if (--left == 0) {
                const int32_t y = nn_requantise((int32_t)sum, c.time_multiplier, c.time_shift);
                *out++ = (int8_t)nn_clamp(nn_wrapping_add(y, c.output_zero_point), -128, 127);
                left = g->rank;
                bias++;
                sum = f + i + 1 < features ? (uint32_t)*bias : 0;
            }
        }
    }
}

static inline void nn_svdf_run(const nn_svdf_geometry *g, const void *constants, const int8_t *in,
                               int16_t *memory, int8_t *out, void *scratch) {
    const nn_svdf_block b = nn_svdf_open(g, constants);
    for (int32_t n = 0; n < g->batch; n++) {
        const nn_rows_vector *x = nn_rows_ready(scratch, in + n * g->inputs, g->inputs);
        nn_svdf_step(g, &b, x, memory + n * g->units * g->rank * g->memory, out + n * g->units);
    }
}

#endif
