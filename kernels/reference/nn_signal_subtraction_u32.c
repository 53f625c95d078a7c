/* SignalFilterBankSpectralSubtraction: what is above a moving average, the estimate of the noise.
 */
#include "nn_signal.h"

void nn_signal_subtraction_u32(const nn_signal_subtraction_geometry *geometry, const int8_t *in,
                               void *state, int8_t *const *outputs) {
    const nn_signal_subtraction_geometry g = *geometry;
    const uint32_t *signal = (const uint32_t *)(const void *)in;
    uint32_t *noise = state, *clean = (uint32_t *)(void *)outputs[0];
    uint32_t *estimates = (uint32_t *)(void *)outputs[1];
    for (int32_t i = 0; i < g.channels; i++) {
        const uint32_t value = signal[i], scaled = value << g.smoothing_bits;
        const uint64_t sum =
            (uint64_t)scaled * g.smoothing[i & 1] + (uint64_t)noise[i] * g.remaining[i & 1];
        const uint32_t estimate = (uint32_t)(sum >> g.bits);
        const uint32_t known = estimate > scaled ? scaled : estimate;
        const uint32_t least = (uint32_t)((uint64_t)value * g.least >> g.bits);
        const uint32_t rest = (scaled - known) >> g.smoothing_bits;
        noise[i] = g.clamps ? known : estimate;
        estimates[i] = noise[i];
        clean[i] = rest > least ? rest : least;
    }
}
