/* SignalFilterBankSquareRoot: rounded square roots. */
#include "nn_signal.h"

/* The root of a number below 4 * `bit` ^ 2, which is a power of four; rounded, at most `most`. */
static uint32_t rounded_root(uint64_t value, uint64_t bit, uint32_t most) {
    uint64_t root = 0;
    for (; bit > value; bit >>= 2) {
    }
    for (; bit != 0; bit >>= 2) {
        const uint64_t next = root + bit;
        root >>= 1;
        if (value >= next) {
            value -= next;
            root += bit;
        }
    }
    return (uint32_t)root + (value > root && root != most);
}

void nn_signal_square_root_u64(const nn_signal_count_geometry *geometry, const nn_view *in1,
                               const nn_view *in2, int8_t *out) {
    const uint64_t *values = (const uint64_t *)(const void *)in1->data;
    const int32_t bits = *(const int32_t *)(const void *)in2->data & 31;
    uint32_t *roots = (uint32_t *)(void *)out;
    for (int32_t i = 0; i < geometry->count; i++) {
        const uint64_t top = (uint64_t)1 << (values[i] >> 32 ? 62 : 30);
        roots[i] = rounded_root(values[i], top, values[i] >> 32 ? UINT32_MAX : UINT16_MAX) >> bits;
    }
}
