/* Copies a box of elements from one layout to another: lines of whole words, four of them at a
 * time; short lines of any bytes where words may lie anywhere. The plain kernel does the rest. */
#include "nn_dsp.h"
#include "nn_lines.h"

#if defined(__thumb2__)
#define FOURTH "r12"
#define ANY "+r"
#elif defined(__thumb__) /* the lower registers alone */
#define FOURTH "r6"
#define ANY "+l"
#endif

/* Copies `fours` times four words, 1 at least; returns where it ends in `in`. */
static inline const int8_t *copy_fours(int8_t *to, const int8_t *from, int32_t fours) {
#ifdef FOURTH
    __asm volatile(".syntax unified\n"
                   "1:\n"
                   "ldm %[from]!, {r3, r4, r5, " FOURTH "}\n"
                   "subs %[fours], %[fours], #1\n"
                   "stm %[to]!, {r3, r4, r5, " FOURTH "}\n"
                   "bne 1b\n"
                   : [from] ANY(from), [to] ANY(to), [fours] ANY(fours)
                   :
                   : "r3", "r4", "r5", FOURTH, "cc", "memory");
#else
    for (; fours > 0; fours--, from += 16, to += 16) {
        __builtin_memmove(to, from, 16);
    }
#endif
    return from;
}

NN_OUTLINE void copy_lines(const nn_lines *l) {
    const int8_t *in = l->in;
    int8_t *out = l->out;
    const int32_t fours = l->count / 16, rest = l->count % 16;
    for (int32_t lines = l->lines; lines > 0; lines--, in += l->in_stride, out += l->out_stride) {
        const int8_t *const from = fours > 0 ? copy_fours(out, in, fours) : in;
        for (int32_t i = 0; i < rest; i += 4) {
#if defined(__thumb__) && !defined(__thumb2__) /* whose compiler would load bytes */
            *(uint32_t *)(void *)(out + 16 * fours + i) =
                *(const uint32_t *)(const void *)(from + i);
#else
            nn_store4(out + 16 * fours + i, nn_load4(from + i));
#endif
        }
    }
}

#ifdef __ARM_FEATURE_UNALIGNED
#define SHORT 192 /* bytes of a line for which calling a function takes longer */

NN_OUTLINE void copy_short(const nn_lines *l) {
    const int8_t *in = l->in;
    int8_t *out = l->out;
    for (int32_t lines = l->lines; lines > 0; lines--, in += l->in_stride, out += l->out_stride) {
        const int8_t *from = in;
        int8_t *to = out;
        int32_t left = l->count;
        for (; left >= 16; left -= 16, from += 16, to += 16) {
            const uint32_t a = nn_load4(from), b = nn_load4(from + 4);
            const uint32_t c = nn_load4(from + 8), d = nn_load4(from + 12);
            nn_store4(to, a);
            nn_store4(to + 4, b);
            nn_store4(to + 8, c);
            nn_store4(to + 12, d);
        }
        for (; left >= 4; left -= 4, from += 4, to += 4) {
            nn_store4(to, nn_load4(from));
            NN_BARRIER(); /* or it would become a call */
        }
        for (; left > 0; left--) {
            *to++ = *from++;
            NN_BARRIER();
        }
    }
}
#else
#define SHORT 0

static inline void copy_short(const nn_lines *l) {
    (void)l;
}
#endif

void nn_copy_s8_dsp(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    const uint32_t places = (uint32_t)(uintptr_t)in | (uint32_t)(uintptr_t)out;
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out)) {
        nn_copy_s8(geometry, in, out);
    } else if (((places | (uint32_t)(l.in_stride | l.out_stride | l.count)) & 3) == 0) {
        copy_lines(&l);
    } else if (l.count <= SHORT) {
        copy_short(&l);
    } else {
        nn_copy_s8(geometry, in, out);
    }
}
