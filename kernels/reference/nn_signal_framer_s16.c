/* SignalFramer: frames that overlap, from samples that do not. */
#include "nn_signal.h"

typedef struct {
    const int16_t *kept, *fresh; /* the samples of a channel, in two parts */
    int32_t count;               /* of the first part */
} sequence;

static void copy(const sequence *from, int32_t first, int32_t count, int16_t *to) {
    for (int32_t i = first; i < first + count; i++) {
        *to++ = i < from->count ? from->kept[i] : from->fresh[i - from->count];
    }
}

void nn_signal_framer_s16(const nn_signal_framer_geometry *geometry, const int8_t *in, void *state,
                          int8_t *const *outputs) {
    const nn_signal_framer_geometry g = *geometry;
    const int32_t steps = g.samples / g.step;
    int16_t *kept = state, *counter = kept + g.channels * g.kept;
    int16_t *frame = (int16_t *)(void *)outputs[0];
    for (int32_t channel = 0; channel < g.channels; channel++, kept += g.kept) {
        const int16_t *fresh = (const int16_t *)(const void *)in + channel * g.samples;
        const sequence all = {kept, fresh, g.kept};
        for (int32_t step = 0; step < steps; step++, frame += g.size) {
            if (*counter + 1 + step >= g.needed) {
                copy(&all, step * g.step, g.size, frame);
            } else {
                NN_MEMSET(frame, 0, sizeof *frame * (size_t)g.size);
            }
        }
        copy(&all, g.samples, g.kept, kept);
    }
    *outputs[1] = *counter + 1 >= g.needed;
    *counter = (int16_t)(*counter + steps < g.needed ? *counter + steps : g.needed);
}
