/* UNIDIRECTIONAL_SEQUENCE_LSTM of int16, as TensorFlow Lite Micro computes it. */
#include "nn_recurrent.h"
#include "nn_sigmoid.h"
#include "nn_wide.h"

enum { INPUT, FORGET, CELL, OUTPUT };

/* A gate's weights, bias and factors stand side by side for a cell: four rows. */
typedef struct {
    const nn_wide_lstm_constants *head;
    const int32_t *biases; /* the two halves of each */
    const int8_t *input_weights, *recurrent_weights;
} wide_block;

static wide_block open_block(const nn_lstm_geometry *g, const void *constants) {
    const nn_wide_lstm_constants *head = (const nn_wide_lstm_constants *)constants;
    wide_block b = {head, (const int32_t *)(const void *)(head + 1), NULL, NULL};
    b.input_weights = (const int8_t *)(b.biases + 8 * g->cells);
    b.recurrent_weights = b.input_weights + (4 * g->cells * g->inputs + 15) / 16 * 16;
    return b;
}

static int32_t narrow(int32_t value) {
    return nn_clamp(value, NN_WIDE_MIN, NN_WIDE_MAX);
}

static int32_t scaled(int64_t sum, int32_t multiplier, int32_t shift) {
    return narrow((int32_t)((sum * multiplier + ((int64_t)1 << (shift - 1))) >> shift));
}

static int32_t product(int32_t a, int32_t b, const nn_wide_lstm_factor *factor) {
    return narrow(nn_requantise(a * b, factor->multiplier, factor->shift));
}

/* The sums of the four gates of a cell. */
static void sum_up(const nn_lstm_geometry *g, const wide_block *b, int32_t cell, const int16_t *x,
                   const int16_t *hidden, int32_t totals[4]) {
    int64_t first[4] = {0}, second[4] = {0};
    nn_wide_dot4(first, x, b->input_weights + 4 * cell * g->inputs, g->inputs, g->inputs);
    nn_wide_dot4(second, hidden, b->recurrent_weights + 4 * cell * g->cells, g->cells, g->cells);
    for (int32_t i = 0; i < 4; i++) {
        const nn_wide_lstm_gate *gate = b->head->gates + i;
        const int32_t *bias = b->biases + 2 * (4 * cell + i);
        const int64_t sum = first[i] + nn_wide_bias(bias[0], bias[1]);
        totals[i] = narrow(scaled(sum, gate->input_multiplier, gate->input_shift) +
                           scaled(second[i], gate->recurrent_multiplier, gate->recurrent_shift));
    }
}

/* Brings a cell up to date, and returns its output. */
static int16_t update(const nn_wide_lstm_constants *c, const int32_t sums[4], int16_t *cell) {
    const uint16_t *table = c->squash.table;
    const int32_t forget = nn_sigmoid(table, 3 * sums[FORGET]);
    const int32_t admitted = nn_sigmoid(table, 3 * sums[INPUT]);
    const int32_t candidate = nn_sigmoid_tangent(table, 3 * sums[CELL]);
    const int32_t exposed = nn_sigmoid(table, 3 * sums[OUTPUT]);
    int32_t state =
        narrow(product(forget, *cell, &c->forget) + product(admitted, candidate, &c->admitted));
    if (c->cell_clip > 0) {
        state = nn_clamp(state, -c->cell_clip, c->cell_clip);
    }
    *cell = (int16_t)state;
    return (int16_t)product(nn_sigmoid_tangent(table, nn_sigmoid_place(&c->squash, state)), exposed,
                            &c->hidden);
}

void nn_lstm_s16(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                 void *hidden, void *cell, int8_t *out, void *scratch) {
    const nn_lstm_geometry *g = geometry;
    const wide_block b = open_block(g, constants);
    const int32_t step = g->time_major ? g->batch : 1, image = g->time_major ? 1 : g->steps;
    int16_t *last = (int16_t *)hidden, *cells = (int16_t *)cell, *next = (int16_t *)scratch;
    for (int32_t n = 0; n < g->batch; n++, last += g->cells, cells += g->cells) {
        for (int32_t t = 0; t < g->steps; t++) {
            const int32_t at = n * image + t * step;
            const int16_t *x = (const int16_t *)(const void *)in + at * g->inputs;
            for (int32_t j = 0; j < g->cells; j++) {
                int32_t totals[4];
                sum_up(g, &b, j, x, last, totals);
                next[j] = update(b.head, totals, cells + j);
            }
            NN_MEMCPY(last, next, 2 * (size_t)g->cells);
            NN_MEMCPY(out + 2 * at * g->cells, next, 2 * (size_t)g->cells);
        }
    }
}
