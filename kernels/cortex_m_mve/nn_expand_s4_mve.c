/* Expands constants whose weights are stored in four bits: nn_expand_s4, 16 bytes at a time. */
#include "nn_cortex_m_mve.h"

#include <arm_mve.h>

enum { PIECE = 32, HALF = PIECE / 2 }; /* bytes */

static inline void copy(int8_t *to, const int8_t *from) {
    vstrbq_s8(to, vldrbq_s8(from));
}

const void *nn_expand_s4_mve(const void *constants, int8_t *out, int32_t bytes) {
    const int8_t *stored = (const int8_t *)constants;
    const int32_t pieces = bytes / PIECE;
    const uint8_t *is_wide = (const uint8_t *)stored + 8;
    uint32_t word;
    __builtin_memcpy(&word, stored, sizeof word);
    const uint8x16_t flipped = vreinterpretq_u8_u32(vdupq_n_u32(word));
    const uint8x16_t above = vdupq_n_u8(0x78), low_half = vdupq_n_u8(15);
    stored += 8 + (pieces + 63) / 64 * 8;
    for (int32_t i = 0; i < pieces; i++, out += PIECE) {
        if ((is_wide[i / 8] >> (i % 8)) & 1) {
            copy(out, stored);
            copy(out + HALF, stored + HALF);
            stored += PIECE;
            continue;
        }
        const uint8x16_t in = vldrbq_u8((const uint8_t *)stored);
        const uint8x16_t low = vandq_u8(in, low_half), high = vshrq_n_u8(in, 4);
        vstrbq_u8((uint8_t *)out, veorq_u8(vaddq_u8(low, above), flipped));
        vstrbq_u8((uint8_t *)out + HALF, veorq_u8(vaddq_u8(high, above), flipped));
        stored += HALF;
    }
    if (bytes % PIECE) {
        copy(out, stored);
        stored += HALF;
    }
    return stored;
}
