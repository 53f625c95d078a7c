/* SignalStacker: a frame, with frames before and after it. */
#include "nn_signal.h"

void nn_signal_stacker_s16(const nn_signal_stacker_geometry *geometry, const int8_t *in,
                           void *state, int8_t *const *outputs) {
    const nn_signal_stacker_geometry g = *geometry;
    const int32_t earlier = g.before + g.after, frames = earlier + 1;
    const size_t bytes = sizeof(int16_t) * (size_t)g.channels;
    int16_t *kept = state, *counter = kept + earlier * g.channels;
    int16_t *stack = (int16_t *)(void *)outputs[0];
    if (*counter == 0) { /* the first frame stands for those before it */
        for (int32_t i = 0; i < g.before; i++) {
            NN_MEMCPY(kept + (earlier - 1 - i) * g.channels, in, bytes);
        }
        *counter = (int16_t)(1 + g.before);
    }
    const int is_valid = *counter >= frames;
    if (is_valid) {
        NN_MEMCPY(stack, kept, bytes * (size_t)earlier);
        NN_MEMCPY(stack + earlier * g.channels, in, bytes);
    } else {
        NN_MEMSET(stack, 0, bytes * (size_t)frames);
    }
    if (earlier > 0) {
        NN_MEMMOVE(kept, kept + g.channels, bytes * (size_t)(earlier - 1));
        NN_MEMCPY(kept + (earlier - 1) * g.channels, in, bytes);
    }
    *outputs[1] = (int8_t)is_valid;
    *counter = (int16_t)(*counter + 1 - (is_valid ? g.step : 0));
}
