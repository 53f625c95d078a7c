/* Copies a box of elements from one layout to another, Helium: lines of neighbours, sixteen bytes
 * at a time; the plain kernel does the rest. */
#include "nn_lines.h"
#include "nn_mve.h"

/* Lines of `vectors` times sixteen bytes, one behind the other on the reading side. */
static inline __attribute__((always_inline)) void copy_vectors(const nn_lines *l, int32_t vectors) {
    const int32_t after = l->out_stride - 16 * vectors;
    const int8_t *in = l->in;
    int8_t *out = l->out;
#pragma GCC unroll 4
    for (int32_t lines = l->lines; lines > 0; lines--, out += after) {
        for (int32_t i = 0; i < vectors; i++, in += 16, out += 16) {
            vstrbq_s8(out, vldrbq_s8(in));
        }
    }
}

static NN_NOINLINE void copy_ones(const nn_lines *lines) {
    copy_vectors(lines, 1);
}

static NN_NOINLINE void copy_twos(const nn_lines *lines) {
    copy_vectors(lines, 2);
}

/* Lines of up to sixteen bytes and `whole` more, a multiple of 16. */
static inline __attribute__((always_inline)) void copy_short(const nn_lines *l, int32_t whole) {
    const mve_pred16_t some = vctp8q((uint32_t)(l->count - whole));
    const int32_t in_stride = l->in_stride, out_stride = l->out_stride;
    const int8_t *in = l->in;
    int8_t *out = l->out;
#pragma GCC unroll 4
    for (int32_t lines = l->lines; lines > 0; lines--, in += in_stride, out += out_stride) {
        for (int32_t i = 0; i < whole; i += 16) {
            vstrbq_s8(out + i, vldrbq_s8(in + i));
        }
        vstrbq_p_s8(out + whole, vldrbq_z_s8(in + whole, some), some);
    }
}

static NN_NOINLINE void copy_vector(const nn_lines *l) {
    copy_short(l, 0);
}

static NN_NOINLINE void copy_two_vectors(const nn_lines *l) {
    copy_short(l, 16);
}

static NN_NOINLINE void copy_three_vectors(const nn_lines *l) {
    copy_short(l, 32);
}

static NN_NOINLINE void copy_any(const nn_lines *l) {
    const int8_t *in = l->in;
    int8_t *out = l->out;
    for (int32_t lines = l->lines; lines > 0; lines--, in += l->in_stride, out += l->out_stride) {
        const int8_t *from = in;
        int8_t *to = out;
        int32_t left = l->count;
        for (; left >= 64; left -= 64, from += 64, to += 64) {
            for (int32_t i = 0; i < 64; i += 16) {
                vstrbq_s8(to + i, vldrbq_s8(from + i));
            }
        }
        nn_mve_copy(to, from, left);
    }
}

void nn_copy_s8_mve(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out) {
    nn_lines l;
    if (!nn_lines_open(&l, geometry, in, out)) {
        nn_copy_s8(geometry, in, out);
    } else if (l.count == 16 && l.in_stride == 16) {
        copy_ones(&l);
    } else if (l.count == 32 && l.in_stride == 32) {
        copy_twos(&l);
    } else if (l.count <= 16) {
        copy_vector(&l);
    } else if (l.count <= 32) {
        copy_two_vectors(&l);
    } else if (l.count <= 48) {
        copy_three_vectors(&l);
    } else {
        copy_any(&l);
    }
}
