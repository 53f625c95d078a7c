/* What the Helium (Armv8.1-M MVE, integer) kernels share: requantisation, patches, blocks of
 * constants.
 *
 * VQRDMULH is round(a * b / 2^31), halves up: exactly the reference's first rounding. VRSHL rounds
 * halves up as well, but the reference's second rounding takes halves away from zero; subtracting 1
 * from a negative quotient first makes them equal. VQDMLAH(q, q, 1) does that in one instruction:
 * q + floor(2 * q / 2^32). An output that is clamped at the zero point needs no such care.
 */
#ifndef NN_MVE_H
#define NN_MVE_H

#include <arm_mve.h>

#include "nn_arith.h"
#include "nn_cortex_m_mve.h"

#define NN_NOINLINE __attribute__((noinline))
/* A function in assembly; gcc must not guess from its (empty) body which registers it keeps.
 * Aligned as newer compilers do unasked: where clang 16 put such code at odd halfwords, it faulted
 * in QEMU 7.2. */
#if defined(__clang__)
#define NN_MVE_NAKED __attribute__((naked, noinline, aligned(4)))
#else
#define NN_MVE_NAKED __attribute__((naked, noinline, noipa, aligned(4)))
#endif

/* A parameter that only the function's assembly knows. */
#define NN_MVE_IN_ASM __attribute__((unused))

/* How a layer's channels are requantised; the packing knows. Depthwise layers are plain or general,
 * which is said at their kernel. */
enum {
    NN_MVE_PLAIN = 0,   /* all shifts right, and nothing below the zero point is put out */
    NN_MVE_ODD = 1,     /* all shifts right by at least one bit */
    NN_MVE_GENERAL = 2, /* any */
};

/* Begins every block of constants of a convolution; what follows is said at each kernel. */
typedef struct {
    nn_conv_constants common;
    int32_t mode; /* NN_MVE_* */
    int32_t reserved[3];
} nn_mve_head;

/* Two vectors of requantised sums as int16, element i of the first before that of the second, with
 * the zero point added and clamped: exact, since what saturates is clamped anyway. */
static inline int16x8_t nn_mve_narrow(int32x4_t first, int32x4_t second, int32_t zero_point,
                                      int16x8_t low, int16x8_t high) {
    int16x8_t both = vqmovnbq_s32(vreinterpretq_s16_s32(first), first);
    both = vqaddq_n_s16(vqmovntq_s32(both, second), (int16_t)zero_point);
    return vminq_s16(vmaxq_s16(both, low), high);
}

/* Copies forward; nothing outside is read or written. */
static inline void nn_mve_copy(int8_t *to, const int8_t *from, int32_t bytes) {
    __asm volatile("wlstp.8 lr, %[bytes], 2f\n"
                   "1:\n"
                   "vldrb.u8 q0, [%[from]], #16\n"
                   "vstrb.8 q0, [%[to]], #16\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [from] "+r"(from), [to] "+r"(to)
                   : [bytes] "r"(bytes)
                   : "q0", "lr", "memory");
}

static inline void nn_mve_fill(int8_t *to, int32_t value, int32_t bytes) {
    __asm volatile("vdup.8 q0, %[value]\n"
                   "wlstp.8 lr, %[bytes], 2f\n"
                   "1:\n"
                   "vstrb.8 q0, [%[to]], #16\n"
                   "letp lr, 1b\n"
                   "2:\n"
                   : [to] "+r"(to)
                   : [bytes] "r"(bytes), [value] "r"(value)
                   : "q0", "lr", "memory");
}

#endif
