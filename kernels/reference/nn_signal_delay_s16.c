/* SignalDelay: earlier samples. */
#include "nn_signal.h"

void nn_signal_delay_s16(const nn_signal_delay_geometry *geometry, const int8_t *in, void *state,
                         int8_t *out) {
    const nn_signal_delay_geometry g = *geometry;
    const int32_t room = g.length > 0 ? g.length : 1;
    const int32_t moved = g.length < g.samples ? g.length : g.samples; /* of the kept samples */
    const size_t bytes = sizeof(int16_t) * (size_t)moved;
    const int16_t *fresh = (const int16_t *)(const void *)in;
    int16_t *kept = state, *late = (int16_t *)(void *)out;
    for (int32_t channel = 0; channel < g.channels; channel++) {
        NN_MEMCPY(late, kept, bytes);
        NN_MEMCPY(late + moved, fresh, sizeof *late * (size_t)(g.samples - moved));
        NN_MEMMOVE(kept, kept + moved, sizeof *kept * (size_t)(g.length - moved));
        NN_MEMCPY(kept + g.length - moved, fresh + g.samples - moved, bytes);
        kept += room;
        fresh += g.samples;
        late += g.samples;
    }
}
