/* Expands constants whose weights are stored in four bits: nn_expand_s4, 16 bytes at a time. */
#include "nn_riscv_v.h"
#include "nn_rvv.h"

enum { PIECE = 32, HALF = PIECE / 2 }; /* bytes */

static inline void copy(int8_t *to, const int8_t *from) {
    __riscv_vse8(to, __riscv_vle8_v_i8m1(from, HALF), HALF);
}

const void *nn_expand_s4_rvv(const void *constants, int8_t *out, int32_t bytes) {
    const int8_t *stored = (const int8_t *)constants;
    const int32_t pieces = bytes / PIECE;
    const uint8_t *is_wide = (const uint8_t *)stored + 8;
    uint32_t word;
    __builtin_memcpy(&word, __builtin_assume_aligned(stored, 4), sizeof word);
    const vuint8m1_t flipped =
        __riscv_vreinterpret_v_u32m1_u8m1(__riscv_vmv_v_x_u32m1(word, HALF / 4));
    stored += 8 + (pieces + 63) / 64 * 8;
    for (int32_t i = 0; i < pieces; i++, out += PIECE) {
        if ((is_wide[i / 8] >> (i % 8)) & 1) {
            copy(out, stored);
            copy(out + HALF, stored + HALF);
            stored += PIECE;
            continue;
        }
        const vuint8m1_t in = __riscv_vle8_v_u8m1((const uint8_t *)stored, HALF);
        const vuint8m1_t low = __riscv_vadd(__riscv_vand(in, 15, HALF), 0x78, HALF);
        const vuint8m1_t high = __riscv_vadd(__riscv_vsrl(in, 4, HALF), 0x78, HALF);
        __riscv_vse8((uint8_t *)out, __riscv_vxor(low, flipped, HALF), HALF);
        __riscv_vse8((uint8_t *)out + HALF, __riscv_vxor(high, flipped, HALF), HALF);
        stored += HALF;
    }
    if (bytes % PIECE) {
        copy(out, stored);
        stored += HALF;
    }
    return stored;
}
