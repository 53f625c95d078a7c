/* The steps of an LSTM. How sums of products are computed says nn_rows.h, or the header of a family
 * that stands in its place: the file that includes this one includes it first.
 */
#ifndef NN_LSTM_H
#define NN_LSTM_H

#include "nn_layer_norm.h"
#include "nn_narrow.h"
#include "nn_recurrent.h"

/* Where the arrays of the constants begin; see nn_recurrent.h. */
typedef struct {
    const nn_lstm_constants *head;
    const nn_lstm_gate *gates; /* those that there are */
    const int32_t *input_biases, *recurrent_biases;
    const int32_t *norm_biases;
    const int16_t *norm_weights, *peepholes;
    const int8_t *input_weights, *recurrent_weights;
    const int32_t *projection_biases;
    const int8_t *projection_weights;
} nn_lstm_block;

/* An array of the block, and the place behind it. */
static inline const void *nn_lstm_array(const int8_t **at, int32_t bytes) {
    const int8_t *begin = *at;
    *at += (bytes + 15) & ~15;
    return begin;
}

static inline nn_lstm_block nn_lstm_open(const nn_lstm_geometry *g, const void *constants) {
    const int32_t rows = g->cells * g->gates;
    const int8_t *at = (const int8_t *)constants;
    nn_lstm_block b;
    b.head = (const nn_lstm_constants *)nn_lstm_array(&at, (int32_t)sizeof(nn_lstm_constants));
    b.gates = b.head->gates;
    b.input_biases = (const int32_t *)nn_lstm_array(&at, 4 * rows);
    b.recurrent_biases = (const int32_t *)nn_lstm_array(&at, 4 * rows);
    b.norm_biases = (const int32_t *)nn_lstm_array(&at, g->normed ? 4 * rows : 0);
    b.norm_weights = (const int16_t *)nn_lstm_array(&at, g->normed ? 2 * rows : 0);
    b.peepholes = (const int16_t *)nn_lstm_array(&at, g->peepholes ? 2 * rows : 0);
    b.input_weights = (const int8_t *)nn_lstm_array(&at, nn_rows_matrix(rows, g->inputs));
    b.recurrent_weights = (const int8_t *)nn_lstm_array(&at, nn_rows_matrix(rows, g->outputs));
    b.projection_biases = (const int32_t *)nn_lstm_array(&at, g->projected ? 4 * g->outputs : 0);
    b.projection_weights = at;
    return b;
}

/* The sums of a cell's gates, without peepholes. */
static inline void nn_lstm_sums(const nn_lstm_geometry *g, const nn_lstm_block *b, int32_t cell,
                                const nn_rows_vector *x, const nn_rows_vector *hidden,
                                int32_t totals[4]) {
    const int32_t row = cell * g->gates;
    int32_t sums[4];
    nn_rows_times(sums, x, b->input_weights + nn_rows_matrix(row, g->inputs), g->gates, g->inputs,
                  b->head->general);
    for (int32_t i = 0; i < g->gates; i++) {
        const int32_t sum = nn_wrapping_add(sums[i], b->input_biases[row + i]);
        totals[i] = nn_narrow_clamp(
            nn_requantise(sum, b->gates[i].input_multiplier, b->gates[i].input_shift));
    }
    nn_rows_times(sums, hidden, b->recurrent_weights + nn_rows_matrix(row, g->outputs), g->gates,
                  g->outputs, b->head->general);
    for (int32_t i = 0; i < g->gates; i++) {
        const int32_t sum = nn_wrapping_add(sums[i], b->recurrent_biases[row + i]);
        const int32_t more =
            nn_requantise(sum, b->gates[i].recurrent_multiplier, b->gates[i].recurrent_shift);
        totals[i] = nn_narrow_clamp(nn_wrapping_add(totals[i], more));
    }
}

/* A gate's sum with what its peephole lets in of the cell. */
static inline int32_t nn_lstm_peep(const nn_lstm_geometry *g, const nn_lstm_block *b, int32_t gate,
                                   int32_t cell, int32_t state, int32_t total) {
    if (!g->peepholes) {
        return total;
    }
    return nn_narrow_clamp(total + nn_requantise(b->peepholes[gate * g->cells + cell] * state,
                                                 b->gates[gate].peephole_multiplier,
                                                 b->gates[gate].peephole_shift));
}

/* What a cell becomes; `sums` of its gates up to the cell gate, the last before the output gate. */
static inline int32_t nn_lstm_cell(const nn_lstm_constants *c, const int32_t *sums, int32_t gates,
                                   int32_t state) {
    const int32_t forget = nn_narrow_logistic(sums[gates - 3]);
    const int32_t candidate = nn_narrow_tanh(sums[gates - 2], NN_NARROW_GATE_BITS);
    const int32_t admitted = gates == 4 ? nn_narrow_logistic(sums[0]) : NN_NARROW_ONE - forget;
    const int32_t kept = nn_rounding_shift(forget * state, 15);
    const int32_t added = nn_rounding_shift(admitted * candidate, 30 - c->cell_bits);
    const int32_t result = nn_narrow_clamp(kept + added);
    return c->cell_clip > 0 ? nn_clamp(result, -c->cell_clip, c->cell_clip) : result;
}

/* What a cell shows; `sum` of its output gate. */
static inline int8_t nn_lstm_shown(const nn_lstm_constants *c, int32_t sum, int32_t state) {
    const int32_t product = nn_narrow_logistic(sum) * nn_narrow_tanh(state, 15 - c->cell_bits);
    const int32_t scaled = nn_requantise(product, c->hidden_multiplier, c->hidden_shift);
    return (int8_t)nn_clamp(scaled + c->hidden_zero_point, -128, 127);
}

/* Brings all cells up to date and fills `shown`, cell by cell. */
static inline void nn_lstm_plain_cells(const nn_lstm_geometry *g, const nn_lstm_block *b,
                                       const nn_rows_vector *x, const nn_rows_vector *hidden,
                                       int16_t *cells, int8_t *shown) {
    const int32_t last = g->gates - 1;
    for (int32_t j = 0; j < g->cells; j++) {
        int32_t totals[4];
        int32_t state = cells[j];
        nn_lstm_sums(g, b, j, x, hidden, totals);
        if (g->peepholes) {
            for (int32_t i = 0; i < last - 1; i++) {
                totals[i] = nn_lstm_peep(g, b, i, j, state, totals[i]);
            }
        }
        state = nn_lstm_cell(b->head, totals, g->gates, state);
        cells[j] = (int16_t)state;
        shown[j] = nn_lstm_shown(b->head, nn_lstm_peep(g, b, last, j, state, totals[last]), state);
    }
}

static inline void nn_lstm_norm(const nn_lstm_geometry *g, const nn_lstm_block *b, int32_t gate,
                                int16_t *sums) {
    const int32_t first = gate * g->cells;
    nn_layer_norm(b->gates + gate, b->norm_biases + first, b->norm_weights + first, sums + first,
                  g->cells);
}

/* The same with layer normalisation, for which all cells' `sums` (gates, cells) have to be known.
 */
static inline void nn_lstm_normed_cells(const nn_lstm_geometry *g, const nn_lstm_block *b,
                                        const nn_rows_vector *x, const nn_rows_vector *hidden,
                                        int16_t *cells, int16_t *sums, int8_t *shown) {
    const int32_t last = g->gates - 1;
    for (int32_t j = 0; j < g->cells; j++) {
        int32_t totals[4];
        nn_lstm_sums(g, b, j, x, hidden, totals);
        for (int32_t i = 0; i < g->gates; i++) {
            const int peeps = i < last - 1;
            const int32_t total = peeps ? nn_lstm_peep(g, b, i, j, cells[j], totals[i]) : totals[i];
            sums[i * g->cells + j] = (int16_t)total;
        }
    }
    for (int32_t i = 0; i < last; i++) {
        nn_lstm_norm(g, b, i, sums);
    }
    for (int32_t j = 0; j < g->cells; j++) {
        const int32_t at = last * g->cells + j;
        int32_t totals[4];
        for (int32_t i = 0; i < last; i++) {
            totals[i] = sums[i * g->cells + j];
        }
        cells[j] = (int16_t)nn_lstm_cell(b->head, totals, g->gates, cells[j]);
        sums[at] = (int16_t)nn_lstm_peep(g, b, last, j, cells[j], sums[at]);
    }
    nn_lstm_norm(g, b, last, sums);
    for (int32_t j = 0; j < g->cells; j++) {
        shown[j] = nn_lstm_shown(b->head, sums[last * g->cells + j], cells[j]);
    }
}

/* The output of a step, from what all cells show. */
static inline void nn_lstm_output(const nn_lstm_geometry *g, const nn_lstm_block *b,
                                  const int8_t *shown, int8_t *hidden, void *room) {
    const nn_lstm_constants *c = b->head;
    const nn_rows_vector *x;
    if (!g->projected) {
        for (int32_t i = 0; i < g->outputs; i++) {
            hidden[i] = shown[i];
        }
        return;
    }
    x = nn_rows_ready(room, shown, g->cells);
    for (int32_t i = 0; i < g->outputs; i += 4) {
        const int32_t rows = nn_min(4, g->outputs - i);
        int32_t sums[4];
        nn_rows_times(sums, x, b->projection_weights + nn_rows_matrix(i, g->cells), rows, g->cells,
                      c->general);
        for (int32_t k = 0; k < rows; k++) {
            const int32_t sum = nn_wrapping_add(sums[k], b->projection_biases[i + k]);
            int32_t y = nn_requantise(sum, c->projection_multiplier, c->projection_shift);
            y = nn_clamp(nn_wrapping_add(y, c->output_zero_point), -128, 127);
            if (c->projection_clip > 0) {
                y = nn_clamp(y, -c->projection_clip, c->projection_clip);
            }
            hidden[i + k] = (int8_t)y;
        }
    }
}

/* All steps of all images, one image after the other. scratch: a gate's sums if normed; room for x,
 * or for what the cells show, and for the last output; what the cells show. */
static inline void nn_lstm_run(const nn_lstm_geometry *g, const void *constants, const int8_t *in,
                               int8_t *hidden, int16_t *cells, int8_t *out, void *scratch) {
    const nn_lstm_block b = nn_lstm_open(g, constants);
    const int32_t step = g->time_major ? g->batch : 1, image = g->time_major ? 1 : g->steps;
    const int32_t widest = g->projected ? nn_max(g->inputs, g->cells) : g->inputs;
    int16_t *sums = (int16_t *)scratch;
    int8_t *room = (int8_t *)(sums + (g->normed ? g->gates * g->cells : 0));
    int8_t *second = room + nn_rows_room(widest);
    int8_t *shown = second + nn_rows_room(g->outputs);
    for (int32_t n = 0; n < g->batch; n++, hidden += g->outputs, cells += g->cells) {
        for (int32_t t = 0; t < g->steps; t++) {
            const int32_t at = n * image + t * step;
            const nn_rows_vector *x = nn_rows_ready(room, in + at * g->inputs, g->inputs);
            const nn_rows_vector *last = nn_rows_ready(second, hidden, g->outputs);
            int8_t *y = out + at * g->outputs;
            if (g->normed) {
                nn_lstm_normed_cells(g, &b, x, last, cells, sums, shown);
            } else {
                nn_lstm_plain_cells(g, &b, x, last, cells, shown);
            }
            nn_lstm_output(g, &b, shown, hidden, room);
            for (int32_t i = 0; i < g->outputs; i++) {
                y[i] = hidden[i];
            }
        }
    }
}

#endif
