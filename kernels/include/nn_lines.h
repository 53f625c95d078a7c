/* Copies of boxes that are lines of neighbours, and may be made several bytes at a time. */
#ifndef NN_LINES_H
#define NN_LINES_H

#include "nn_arith.h"

/* `lines` of `count` bytes each. */
typedef struct {
    const int8_t *in;
    int8_t *out;
    int32_t in_stride, out_stride, lines, count;
} nn_lines;

/* Whether reading some bytes and writing them, ascending, never writes what is read later: nothing
 * moves up, or nothing is both read and written. */
static inline int nn_lines_ascend(const nn_lines *l) {
    const int8_t *const in_last = l->in + (l->lines - 1) * l->in_stride;
    const int8_t *const out_last = l->out + (l->lines - 1) * l->out_stride;
    const int down = l->out <= l->in && out_last <= in_last;
    return down || out_last + l->count <= l->in || in_last + l->count <= l->out;
}

/* Sets `l` up; 0 if the box is none, or may not be copied so. */
static inline int nn_lines_open(nn_lines *l, const nn_copy_geometry *g, const int8_t *in,
                                int8_t *out) {
    const int32_t last = g->rank - 1;
    if (last < 0 || last > 1 || g->in_stride[last] != 1 || g->out_stride[last] != 1) {
        return 0;
    }
    l->in = in;
    l->out = out;
    l->count = g->size[last];
    l->lines = last > 0 ? g->size[0] : 1;
    l->in_stride = last > 0 ? g->in_stride[0] : l->count;
    l->out_stride = last > 0 ? g->out_stride[0] : l->count;
    return l->lines > 0 && l->count > 0 && l->in_stride >= 0 && l->out_stride >= 0 &&
           nn_lines_ascend(l);
}

#endif
