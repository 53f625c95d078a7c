/* Operators that keep state: their kernels, what these are told, and the constants they read.
 *
 * They compute whole tensors. `state` is the operator's own memory, which lives from call to call
 * and which a call brings up to date where it lies; it is aligned as its elements are. Constants
 * are blocks as nn.h says; arrays in them begin at multiples of 16 bytes.
 */
#ifndef NN_RECURRENT_H
#define NN_RECURRENT_H

#include "nn.h"

/* ---- SVDF
 * ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t batch, inputs, units;
    int32_t rank;   /* features of a unit */
    int32_t memory; /* steps that a feature keeps */
} nn_svdf_geometry;

/* constants: nn_svdf_constants; an int32 a feature, minus the input's zero point times the sum of
 * its weights; an int32 a unit, its bias; the weights over time, int16 (features, memory); the
 * weights of the features, int8 (features, inputs). */
typedef struct {
    int32_t feature_multiplier, feature_shift; /* of a sum over the inputs, to the state's scale */
    int32_t time_multiplier, time_shift;       /* of a sum over features and time */
    int32_t output_zero_point;
    int32_t general; /* of the family's matrices; 0 in the plain layout */
    int32_t reserved[2];
} nn_svdf_constants;

/* state: int16 (batch, features, memory), the newest step last. */
void nn_svdf_s8(const nn_svdf_geometry *geometry, const void *constants, const int8_t *in,
                void *state, int8_t *out);

/* ---- LSTM
 * ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t batch, steps, inputs, cells, outputs;
    int32_t time_major; /* 1: in and out are (steps, batch, ...), else (batch, steps, ...) */
    int32_t gates;      /* 4: input, forget, cell, output; 3: the input gate is 1 - forget */
    int32_t peepholes, normed, projected; /* 1 or 0 */
} nn_lstm_geometry;

/* How a gate's sums are requantised: real factor = multiplier * 2^(shift - 31). */
typedef struct {
    int32_t input_multiplier, input_shift;
    int32_t recurrent_multiplier, recurrent_shift;
    int32_t peephole_multiplier, peephole_shift;
    int32_t norm_multiplier, norm_shift;
    int32_t norm_guard; /* in the place of a variance below 1 */
} nn_lstm_gate;

/* constants: nn_lstm_constants; int32 (cells, gates) added to the products of the inputs, then
 * those of the recurrent products; if normed int32 (gates, cells) biases and int16 (gates, cells)
 * weights of the layer normalisation; with peepholes int16 (gates, cells), 0 where there is none;
 * int8 (cells, gates, inputs); int8 (cells, gates, outputs); if projected int32 (outputs) and int8
 * (outputs, cells). */
typedef struct {
    int32_t cell_bits; /* the cell's scale is 2^-cell_bits, 9 to 15 */
    int32_t cell_clip; /* 0: none */
    int32_t hidden_multiplier, hidden_shift, hidden_zero_point;
    int32_t projection_multiplier, projection_shift, projection_clip;
    int32_t output_zero_point; /* of the projection */
    int32_t general;           /* of the family's matrices; 0 in the plain layout */
    int32_t reserved[2];
    nn_lstm_gate gates[4]; /* those that there are come first */
} nn_lstm_constants;

/* hidden: int8 (batch, outputs), the last step's output; cell: int16 (batch, cells). scratch: an
 * int8 a cell; if normed, before that an int16 a cell and gate. */
void nn_lstm_s8(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                void *hidden, void *cell, int8_t *out, void *scratch);

/* ---- LSTM of int16: no optional parts ------------------------------------------------------- */

/* Sums of 64 bits: times the multiplier, shifted right. */
typedef struct {
    int32_t input_multiplier, input_shift;
    int32_t recurrent_multiplier, recurrent_shift;
} nn_wide_lstm_gate;

/* Products of two values: real factor = multiplier * 2^(shift - 31). */
typedef struct {
    int32_t multiplier, shift;
} nn_wide_lstm_factor;

/* constants: nn_wide_lstm_constants; int64 (cells, gates) biases; int8 (cells, gates, inputs); int8
 * (cells, gates, cells). */
typedef struct {
    nn_wide_lstm_gate gates[4]; /* input, forget, cell, output */
    nn_wide_lstm_factor forget, admitted, hidden;
    int32_t cell_clip; /* 0: none */
    int32_t reserved;
    nn_sigmoid_constants squash; /* for a cell */
    int32_t padding[2];
} nn_wide_lstm_constants;

/* hidden, cell: int16 (batch, cells). scratch: an int16 a cell. */
void nn_lstm_s16(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                 void *hidden, void *cell, int8_t *out, void *scratch);

#endif
