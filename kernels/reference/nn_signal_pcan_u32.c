/* SignalPCAN: an automatic gain control, whose gain follows the estimate of the noise. */
#include "nn_signal.h"

#include "nn_fixed.h"

#define SNR_BITS 12 /* fractional bits of the signal over the noise */
#define OUT_BITS 6

/* The gain: a parabola between two powers of two, of which the table has three coefficients. */
static int16_t gain_of(const int16_t *table, uint32_t noise) {
    if (noise <= 2) {
        return table[noise];
    }
    const int32_t length = 32 - nn_leading_zeros(noise);
    const int16_t *c = table + 4 * length - 6;
    const int32_t part =
        (int32_t)((length < 11 ? noise << (11 - length) : noise >> (length - 11)) & 0x3FF);
    const uint32_t slope = (uint32_t)((c[2] * part) >> 5) + ((uint32_t)c[1] << 5);
    const int32_t rise = (int32_t)(slope * (uint32_t)part + (1U << 14)) >> 15;
    return (int16_t)(rise + c[0]);
}

static uint32_t shrunk(uint32_t ratio) {
    if (ratio < 2U << SNR_BITS) {
        return (ratio * ratio) >> (2 + 2 * SNR_BITS - OUT_BITS);
    }
    return (ratio >> (SNR_BITS - OUT_BITS)) - (1U << OUT_BITS);
}

void nn_signal_pcan_u32(const nn_signal_pcan_geometry *geometry, const void *constants,
                        const nn_view *in1, const nn_view *in2, int8_t *out) {
    const uint32_t *signal = (const uint32_t *)(const void *)in1->data;
    const uint32_t *noise = (const uint32_t *)(const void *)in2->data;
    uint32_t *result = (uint32_t *)(void *)out;
    for (int32_t i = 0; i < geometry->channels; i++) {
        const uint32_t gain = (uint32_t)gain_of(constants, noise[i]);
        result[i] = shrunk((uint32_t)((uint64_t)signal[i] * gain >> geometry->shift));
    }
}
