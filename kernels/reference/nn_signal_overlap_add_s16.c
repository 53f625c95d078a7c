/* SignalOverlapAdd of int16: sums are clamped. */
#include "nn_signal_overlap.h"

#include "nn_fixed.h"

static inline int16_t sum(int16_t a, int16_t b) {
    return (int16_t)nn_clamp(a + b, INT16_MIN, INT16_MAX);
}

void nn_signal_overlap_add_s16(const nn_signal_overlap_geometry *geometry, const int8_t *in,
                               void *state, int8_t *out) {
    NN_OVERLAP_ADD(int16_t, sum)
}
