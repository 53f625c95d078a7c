/* Copies a box of elements from one layout to another: lines of whole words, four of them at a
 * time; lines of any bytes where words may lie anywhere. The plain kernel does the rest. */
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
/* Copies four words; all are loaded before the first is stored. */
static inline void copy_four(int8_t *to, const int8_t *from) {
    const uint32_t a = nn_load4(from), b = nn_load4(from + 4);
    const uint32_t c = nn_load4(from + 8), d = nn_load4(from + 12);
    nn_store4(to, a);
    nn_store4(to + 4, b);
    nn_store4(to + 8, c);
    nn_store4(to + 12, d);
}

/* One line of four bytes or more. Its last word is loaded before its first is stored, as what is
 * read and what is written may overlap. */
static inline void copy_words(int8_t *to, const int8_t *from, int32_t left) {
    const uint32_t last = nn_load4(from + left - 4);
    int8_t *const end = to + left - 4;
#pragma GCC unroll 1
    for (; left > 32; left -= 32, from += 32, to += 32) {
        copy_four(to, from);
        copy_four(to + 16, from + 16);
    }
    if (left > 16) {
        copy_four(to, from);
        left -= 16, from += 16, to += 16;
    }
    if (left > 8) {
        const uint32_t a = nn_load4(from), b = nn_load4(from + 4);
        nn_store4(to, a);
        nn_store4(to + 4, b);
        left -= 8, from += 8, to += 8;
    }
    if (left > 4) {
        nn_store4(to, nn_load4(from));
    }
    nn_store4(end, last);
}

/* Lines of any bytes. */
NN_OUTLINE void copy_any(const nn_lines *l) {
    const int8_t *in = l->in;
    int8_t *out = l->out;
    for (int32_t lines = l->lines; lines > 0; lines--, in += l->in_stride, out += l->out_stride) {
        if (l->count >= 4) {
            copy_words(out, in, l->count);
            continue;
        }
        for (int32_t i = 0; i < l->count; i++) {
            out[i] = in[i];
            NN_BARRIER();
        }
    }
}
#endif

void nn_copy_s8_dsp(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    const uint32_t places = (uint32_t)(uintptr_t)in | (uint32_t)(uintptr_t)out;
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out)) {
        nn_copy_s8(geometry, in, out);
    } else if (((places | (uint32_t)(l.in_stride | l.out_stride | l.count)) & 3) == 0) {
        copy_lines(&l);
    } else {
#ifdef __ARM_FEATURE_UNALIGNED
        copy_any(&l);
#else
        nn_copy_s8(geometry, in, out);
#endif
    }
}
