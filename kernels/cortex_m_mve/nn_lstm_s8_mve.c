/* UNIDIRECTIONAL_SEQUENCE_LSTM with Helium: the gates of a cell are four rows of weights. */
#include "nn_mve_rows.h"

#include "nn_lstm.h"

void nn_lstm_s8_mve(const nn_lstm_geometry *geometry, const void *constants, const int8_t *in,
                    void *hidden, void *cell, int8_t *out, void *scratch) {
    nn_lstm_run(geometry, constants, in, (int8_t *)hidden, (int16_t *)cell, out, scratch);
}
