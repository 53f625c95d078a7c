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

/* Calls `compute` for runs that cover the window: element i of a run is made of the elements i of
 * both operands, or of the only one that an operand with one channel has. Where something lies
 * between the pixels of a view, or an operand repeats itself, a run is one pixel. */
typedef void nn_mve_run_of_two(const void *plan, const int8_t *a, const int8_t *b, int8_t *out,
                               int32_t count);

static inline __attribute__((always_inline)) void
nn_mve_for_runs(nn_mve_run_of_two *compute, const void *plan, const nn_view *in1,
                const nn_view *in2, const nn_view *out, const nn_window *window) {
    const int moves1 = in1->ring_cols > 1,
              moves2 = in2->ring_cols > 1; /* else one column serves all */
    const int32_t channels = out->channels;
    const int32_t step1 = moves1 ? in1->pixel_stride : 0, step2 = moves2 ? in2->pixel_stride : 0;
    const int joined = step1 == channels && step2 == channels && nn_dense(out);
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            const int8_t *a = nn_pixel(in1, y, x), *b = nn_pixel(in2, y, x);
            int8_t *result = nn_pixel(out, y, x);
            run = nn_run(out, x, window->x1 - x);
            run = moves1 ? nn_run(in1, x, run) : run;
            run = moves2 ? nn_run(in2, x, run) : run;
            if (joined) {
                compute(plan, a, b, result, run * channels);
                continue;
            }
            for (int32_t i = run; i > 0; i--) {
                compute(plan, a, b, result, channels);
                a += step1;
                b += step2;
                result += out->pixel_stride;
            }
        }
    }
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
