/* SignalOverlapAdd of float32. */
#include "nn_signal_overlap.h"

static inline float sum(float a, float b) {
    return a + b;
}

void nn_signal_overlap_add_f32(const nn_signal_overlap_geometry *geometry, const int8_t *in,
                               void *state, int8_t *out) {
    NN_OVERLAP_ADD(float, sum)
}
