/* What the Helium convolutions without groups share: how runs of pixels get their outputs. */
#ifndef NN_MVE_CONV_H
#define NN_MVE_CONV_H

#include "nn_mve_pairs.h"
#include "nn_mve_patches.h"

/* Bytes from a pixel's outputs to its neighbour's that offsets of 16 bits reach, with three more
 * channels; beyond, pixels are computed one by one. */
#define NN_MVE_MAX_APART (65535 - 3)

/* The dot products for so many bytes. */
static inline void (*nn_mve_dots_for(int32_t bytes))(void) {
    if (bytes <= 32) {
        return bytes <= 16 ? nn_mve_dots_1 : nn_mve_dots_2;
    }
    if (bytes <= 48) {
        return nn_mve_dots_3;
    }
    return bytes <= 128 ? nn_mve_dots_8 : nn_mve_dots_any;
}

/* What all pairs of a call share; `step`: bytes from a pair's inputs to those of the next. */
static inline void nn_mve_open_pairs(nn_mve_pairs *p, const void *constants, int32_t inputs,
                                     const nn_view *out, int32_t step) {
    const nn_mve_head *head = (const nn_mve_head *)constants;
    p->x_step = step;
    p->out_step = 2 * out->pixel_stride;
    p->factors = (const int32_t *)(const void *)(head + 1);
    p->weights = (const int8_t *)(p->factors + ((out->channels + 3) & ~3) * 2);
    p->outputs = out->channels;
    p->inputs = inputs;
    p->apart = -1;
}

/* Not inline, so that the callers keep no vectors, which would take room on their stack. */
static NN_NOINLINE void nn_mve_set_offsets(nn_mve_pairs *p, int32_t apart) {
    const uint16x8_t lanes = vidupq_n_u16(0, 1), odd = vandq_u16(lanes, vdupq_n_u16(1));
    p->offsets = vmlaq_n_u16(vshrq_n_u16(lanes, 1), odd, (uint16_t)apart);
}

/* `count` pairs, with their inputs at x0 and x1, of pixels `apart` bytes from each other; 0: one
 * pixel. */
static inline void nn_mve_run(nn_mve_pairs *p, int32_t apart, int32_t count) {
    if (p->apart != apart) {
        p->apart = apart;
        nn_mve_set_offsets(p, apart);
        /* Up to three vectors stay in registers, which is worth more than what is computed twice.
         */
        p->dots = apart > 0 || p->inputs <= 48 ? nn_mve_dots_for(p->inputs) : nn_mve_dots_single;
    }
    p->left = count;
    nn_mve_run_pairs(p);
}

/* The pixel with inputs at x0. */
static inline void nn_mve_run_single(nn_mve_pairs *p) {
    p->x1 = p->x0;
    nn_mve_run(p, 0, 1);
}

/* `count` neighbouring pixels from p->out on, whose inputs are gathered from column `left` on, into
 * scratch, or read where they are. */
static inline __attribute__((always_inline)) void
nn_mve_gathered_run(nn_mve_pairs *p, const nn_mve_patches *patches, int32_t apart, int32_t left,
                    int32_t count, int8_t *scratch) {
    int8_t *const first = scratch, *const second = scratch + ((p->inputs + 15) & ~15);
    p->x0 = first;
    p->x1 = second;
    while (count > 1) {
        int32_t inside = nn_min(nn_mve_pairs_inside(patches, left), count >> 1);
        int32_t offset = nn_column(patches->in, left) * patches->in->pixel_stride;
        const int32_t pairs = nn_max(inside, 1);
        if (inside == 0) {
            nn_mve_gather(patches, left, first);
            nn_mve_gather(patches, left + patches->geometry->stride_w, second);
            nn_mve_run(p, apart, 1);
        } else if (patches->in_place && patches->inside) {
            p->x0 = patches->row[0] + offset;
            p->x1 = p->x0 + patches->next;
            p->x_step = 2 * patches->next;
            nn_mve_run(p, apart, inside);
            p->x0 = first;
            p->x1 = second;
            p->x_step = 0;
            inside = 0;
        }
        for (; inside > 0; inside--, offset += 2 * patches->next) {
            nn_mve_gather_pair(patches, offset, first, second);
            nn_mve_run(p, apart, 1);
        }
        count -= 2 * pairs;
        left += 2 * pairs * patches->geometry->stride_w;
    }
    if (count > 0) {
        nn_mve_gather(patches, left, first);
        nn_mve_run_single(p);
    }
}

#endif
