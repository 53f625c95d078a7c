/* SignalFilterBank: weighted sums of bins. Each bin counts for two channels: it lies in the falling
 * side of one and in the rising side of the next. The first entry of the tables lies before the
 * first channel, so its rising side is of no channel. */
#include "nn_signal.h"

void nn_signal_filter_bank_u32(const nn_signal_bank_geometry *geometry, const void *constants,
                               const int8_t *in, int8_t *out) {
    const int32_t entries = geometry->channels + 1;
    const int16_t *starts = constants, *firsts = starts + entries, *widths = firsts + entries;
    const int16_t *rising = widths + entries, *falling = rising + geometry->weights;
    const uint32_t *bins = (const uint32_t *)(const void *)in;
    uint64_t *sums = (uint64_t *)(void *)out;
    uint64_t carried = 0;
    for (int32_t i = 0; i < entries; i++) {
        const uint32_t *bin = bins + starts[i];
        const int16_t *up = rising + firsts[i], *down = falling + firsts[i];
        uint64_t sum = carried;
        carried = 0;
        for (int32_t j = 0; j < widths[i]; j++) {
            sum += (uint64_t)up[j] * bin[j];
            carried += (uint64_t)down[j] * bin[j];
        }
        if (i > 0) {
            sums[i - 1] = sum;
        }
    }
}
