/* SignalEnergy: squares of magnitudes. */
#include "nn_signal.h"

void nn_signal_energy_s16(const nn_signal_energy_geometry *geometry, const int8_t *in,
                          int8_t *out) {
    const int16_t *spectrum = (const int16_t *)(const void *)in;
    uint32_t *energy = (uint32_t *)(void *)out;
    for (int32_t i = 0; i < geometry->bins; i++) {
        const int32_t re = spectrum[2 * i], im = spectrum[2 * i + 1];
        const int inside = i >= geometry->first && i < geometry->end;
        energy[i] = inside ? (uint32_t)(re * re) + (uint32_t)(im * im) : 0;
    }
}
