/* Sums of products with rows of weights, 16 output channels at a time: what convolutions and dense
 * layers are made of.
 *
 * Weights: a row for each channel, one behind the other, all of its inputs and zeros up to a
 * multiple of 4; rows of zeros fill the last group up. For a rest of inputs the last 32 bytes of a
 * row are read: what is before the rest, at worst the end of the records, is multiplied with zeros.
 * Groups 2i and 2i + 1 are the even and the odd of 32 channels; a last group without a partner has
 * its channels side by side.
 */
#ifndef NN_VPU_MATRIX_H
#define NN_VPU_MATRIX_H

#include "nn_vpu_requantise.h"

/* The inputs of pixels: `count` runs of `bytes` each, a multiple of 32 if there are several. What
 * is beyond the last 32 inputs, the rest, comes behind zeros to the end of 32 bytes. */
typedef struct {
    /* nn_vpu_offsets.h has the places of what is before `count`. */
    int32_t x_step, to_step; /* from pixel to pixel, of inputs and of outputs */
    int32_t pairs, odd;      /* of the blocks of 32 inputs of a run; a rest alone is an odd one */
    int32_t more;            /* runs behind the first one, or the rest behind the only one */
    int32_t ahead;           /* from a run's end to the next one; of a rest: how far before it its
                                weights are read */
    int32_t ring;            /* bytes of the ring that runs lie in */
    const int8_t *ring_end;  /* and where it ends */
    int32_t rest_from;       /* where a rest is loaded, from a pixel's first input on */
    int8_t *rest_to;         /* where the bytes of */
    uint32_t rest_mask;      /* are stored, */
    int8_t *rest;            /* within 32 bytes of zeros */
    int32_t count, bytes;
    const int8_t *end; /* of what may be read; past a run it does not matter what is there */
} nn_vpu_runs;

/* The end of what may be read from row y on: the row's, or that of the next one where it is behind
 * it and `more` says that it is read as well. */
static inline const int8_t *nn_vpu_row_end(const nn_view *view, int32_t y, int more) {
    const int8_t *row = nn_row(view, y);
    if (more && nn_row(view, y + 1) > row) {
        row = nn_row(view, y + 1);
    }
    return row + (view->ring_cols - 1) * view->pixel_stride + view->channels;
}

/* Copies bytes, by the unit where both addresses let it; changes vD. */
static inline void nn_vpu_copy(nn_vpu *v, int8_t *to, const int8_t *from, int32_t bytes) {
    NN_VPU_SCALAR(3);
    if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
        if (bytes >= NN_VPU_BYTES) {
            for (int32_t i = 0; i + NN_VPU_BYTES <= bytes; i += NN_VPU_BYTES) {
                nn_vpu_vldd(v, from + i);
                nn_vpu_vstd(v, to + i);
                NN_VPU_SCALAR(1);
            }
            if (bytes % 4 == 0) { /* the last vector lies over the one before it */
                nn_vpu_vldd(v, from + bytes - NN_VPU_BYTES);
                nn_vpu_vstd(v, to + bytes - NN_VPU_BYTES);
                return;
            }
            from += bytes / NN_VPU_BYTES * NN_VPU_BYTES;
            to += bytes / NN_VPU_BYTES * NN_VPU_BYTES;
            bytes %= NN_VPU_BYTES;
        }
        for (; bytes >= 4; bytes -= 4) {
            memcpy(to, from, 4);
            from += 4;
            to += 4;
            NN_VPU_SCALAR(3);
        }
    }
    for (; bytes >= 4; bytes -= 4) {
        const int8_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        from += 4;
        to += 4;
        NN_VPU_SCALAR(9);
    }
    for (; bytes > 0; bytes--) {
        *to++ = *from++;
        NN_VPU_SCALAR(3);
    }
}

/* Rows of weights that lie `step` bytes before one another, the last lane's first. Only the lanes
 * from `first` to before `end` have rows, or are stored. */
typedef struct {
    const int8_t *last;
    int32_t step, first, end;
} nn_vpu_matrix;

/* 32 inputs times rows of weights, of which the last lane's part is at `last`: 17 issues and a
 * branch. Steps ride in the bundles. Functions in assembly multiply what is in the place of rows
 * that are not there. */
static inline void nn_vpu_rows(nn_vpu *v, const int8_t *x, const nn_vpu_matrix *m,
                               const int8_t *last) {
    nn_vpu_vldc(v, x);
    for (int32_t lane = NN_VPU_ACC - 1; lane >= 0; lane--) {
        const int has_row = lane >= m->first && lane < m->end;
        nn_vpu_vlmaccr(v, has_row ? (const void *)last : nn_vpu_zeros);
        last -= m->step;
    }
    NN_VPU_MAC(1 + NN_VPU_ACC);
    NN_VPU_SCALAR(1);
}

/* 32 inputs that the unit cannot load where they are. */
NN_OUTLINE void nn_vpu_rows_apart(nn_vpu *v, const int8_t *x, const nn_vpu_matrix *m,
                                  const int8_t *last) {
    NN_VPU_ALIGNED int8_t copy[NN_VPU_BYTES];
    memcpy(copy, x, NN_VPU_BYTES);
    NN_VPU_SCALAR(9 * NN_VPU_BYTES / 4);
    nn_vpu_rows(v, copy, m, last);
}

/* How far before a rest's weights, a multiple of 4 bytes, the 32 bytes begin that are read of a
 * row. */
static inline int32_t nn_vpu_before_rest(int32_t rest) {
    return NN_VPU_BYTES - (rest + 3) / 4 * 4;
}

/* Fills in what follows from `count`, `bytes` and the address of 32 zeros; `row_step` is from run
 * to run, in a ring. The last 32 bytes of a run are loaded for its rest, if it has as many. */
static inline void nn_vpu_open_runs(nn_vpu *v, nn_vpu_runs *runs, int32_t count, int32_t bytes,
                                    int32_t row_step, int8_t *rest) {
    const int32_t blocks = bytes / NN_VPU_BYTES, of_rest = bytes % NN_VPU_BYTES;
    const int32_t before = of_rest > 0 ? nn_vpu_before_rest(of_rest) : 0;
    runs->count = count;
    runs->bytes = bytes;
    runs->pairs = blocks > 0 ? (blocks - 1) / 2 : 0;
    runs->odd = blocks == 0 || (blocks & 1);
    runs->more = of_rest > 0 ? blocks > 0 : count - 1;
    runs->ahead = of_rest > 0 ? before : row_step - bytes;
    runs->rest = rest;
    runs->rest_to = blocks > 0 ? rest : rest + before;
    runs->rest_from = blocks > 0 ? blocks * NN_VPU_BYTES - before : 0;
    runs->rest_mask = (((uint32_t)1 << of_rest) - 1) << (blocks > 0 ? before : 0);
    nn_vpu_vclrdr(v);
    nn_vpu_vstr(v, rest);
    NN_VPU_SCALAR(40);
}

/* Brings the rest of the run at `x` behind zeros; changes vR. */
static inline void nn_vpu_take_rest(nn_vpu *v, const nn_vpu_runs *runs, const int8_t *x) {
    const int32_t bytes = runs->bytes % NN_VPU_BYTES;
    const int8_t *from = x + runs->rest_from;
    NN_VPU_SCALAR(4);
    if (bytes == 0) {
        return;
    }
    if (((uintptr_t)x & 3) == 0 && runs->end - from >= NN_VPU_BYTES) {
        nn_vpu_vldr(v, from);
        nn_vpu_vstrpv(v, runs->rest_to, runs->rest_mask);
        return;
    }
    memcpy(runs->rest + nn_vpu_before_rest(bytes), x + runs->bytes - bytes, (size_t)bytes);
    NN_VPU_SCALAR(2 * bytes + 4);
}

/* The whole chunks of a run; returns where the weights of the inputs behind them begin. */
static inline const int8_t *nn_vpu_run(nn_vpu *v, const int8_t *x, int32_t bytes,
                                       const nn_vpu_matrix *m, const int8_t *last) {
    NN_VPU_SCALAR(2); /* the address's test */
    if (((uintptr_t)x & 3) == 0) {
        for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
            nn_vpu_rows(v, x, m, last);
            x += NN_VPU_BYTES;
            last += NN_VPU_BYTES;
        }
        return last;
    }
    for (; bytes >= NN_VPU_BYTES; bytes -= NN_VPU_BYTES) {
        nn_vpu_rows_apart(v, x, m, last);
        x += NN_VPU_BYTES;
        last += NN_VPU_BYTES;
    }
    return last;
}

/* The products of the pixel whose first input is at `x` are added to the accumulators; the rest of
 * a run was taken. */
static inline void nn_vpu_add_pixel(nn_vpu *v, const nn_vpu_matrix *m, const nn_vpu_runs *runs,
                                    const int8_t *x) {
    const int32_t rest = runs->bytes % NN_VPU_BYTES; /* of one run */
    const int8_t *last = nn_vpu_run(v, x, runs->bytes, m, m->last);
    for (int32_t i = runs->count - 1; i > 0; i--) {
        x += runs->bytes + runs->ahead;
        x = x >= runs->ring_end ? x - runs->ring : x;
        last = nn_vpu_run(v, x, runs->bytes, m, last);
        NN_VPU_SCALAR(3);
    }
    if (rest > 0) {
        nn_vpu_rows(v, runs->rest, m, last - nn_vpu_before_rest(rest));
    }
}

/* A group's outputs of the pixel whose first input is at `x`. */
static inline void nn_vpu_pixel(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *group,
                                const nn_vpu_runs *runs, const int8_t *x, int8_t *to) {
    const int32_t alone = group->order == NN_VPU_ALONE, odd = group->order == NN_VPU_ODD;
    const nn_vpu_matrix m = {group->weights, group->step, group->skip,
                             alone ? group->bytes : (group->bytes + 1 - odd) / 2};
    nn_vpu_take_rest(v, runs, x);
    nn_vpu_biases(v, group);
    nn_vpu_add_pixel(v, &m, runs, x);
    nn_vpu_finish(v, b, group, to);
}

#ifdef __XS3A__
typedef char nn_vpu_runs_layout[offsetof(nn_vpu_runs, count) == 4 * RUNS_REST + 4 ? 1 : -1];
void nn_vpu_pixels_xs3(const nn_vpu_group *groups, const nn_vpu_runs *runs, const int8_t *x,
                       int8_t *to, int32_t pixels, int32_t more);

/* How many of `pixels` pixels from `x` on the function in assembly can compute. */
static inline int32_t nn_vpu_by_xs3(const nn_vpu_runs *runs, const int8_t *x, const int8_t *to,
                                    int32_t pixels) {
    const intptr_t last =
        runs->end - NN_VPU_BYTES - x; /* where a pixel's first 32 bytes may begin */
    if ((((uintptr_t)x | (uintptr_t)to | (uint32_t)runs->x_step | (uint32_t)runs->to_step) & 3) !=
        0) {
        return 0;
    }
    if (runs->bytes >= NN_VPU_BYTES || last >= (pixels - 1) * runs->x_step) {
        return pixels;
    }
    return last < 0 ? 0 : (int32_t)last / runs->x_step + 1;
}
#endif

/* As nn_vpu_pixels, pixel by pixel. */
NN_OUTLINE void nn_vpu_each_pixel(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *groups,
                                  int32_t count, const nn_vpu_runs *runs, const int8_t *x,
                                  int8_t *to, int32_t pixels) {
    for (const nn_vpu_group *group = groups; group < groups + count; group++) {
        for (int32_t i = 0; i < pixels; i++) {
            nn_vpu_pixel(v, b, group, runs, x + i * runs->x_step,
                         to + i * runs->to_step + group->place);
            NN_VPU_SCALAR(2);
        }
        NN_VPU_SCALAR(6);
    }
}

/* The outputs of `count` groups of `pixels` pixels, the first one's inputs at `x` and its outputs
 * at `to`. */
static inline void nn_vpu_pixels(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *groups,
                                 int32_t count, const nn_vpu_runs *runs, const int8_t *x,
                                 int8_t *to, int32_t pixels) {
#ifdef __XS3A__
    const int32_t most = nn_vpu_by_xs3(runs, x, to, pixels);
    if (most > 0) {
        nn_vpu_pixels_xs3(groups, runs, x, to, most, count - 1);
        if (most == pixels) {
            return;
        }
        x += most * runs->x_step;
        to += most * runs->to_step;
        pixels -= most;
        if (most * runs->x_step >= NN_VPU_BYTES) { /* what is before the last pixel can be read */
            nn_vpu_runs last = *runs;
            last.rest_from = -runs->ahead;
            last.rest_to = runs->rest;
            last.rest_mask = runs->rest_mask << runs->ahead;
            nn_vpu_pixels_xs3(groups, &last, x, to, pixels, count - 1);
            return;
        }
    }
#endif
    nn_vpu_each_pixel(v, b, groups, count, runs, x, to, pixels);
}

/* Whether one call of the function in assembly can compute `pixels` pixels of any groups. */
static inline int nn_vpu_all_by_xs3(const nn_vpu_runs *runs, const int8_t *x, const int8_t *to,
                                    int32_t pixels) {
#ifdef __XS3A__
    return nn_vpu_by_xs3(runs, x, to, pixels) == pixels;
#else
    (void)runs, (void)x, (void)to, (void)pixels;
    return 0;
#endif
}

/* As nn_vpu_pixels; `all`: what nn_vpu_all_by_xs3 said of these pixels. */
static inline void nn_vpu_pixels_known(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_group *groups,
                                       int32_t count, const nn_vpu_runs *runs, const int8_t *x,
                                       int8_t *to, int32_t pixels, int all) {
#ifdef __XS3A__
    if (all) {
        nn_vpu_pixels_xs3(groups, runs, x, to, pixels, count - 1);
        return;
    }
#endif
    (void)all;
    nn_vpu_pixels(v, b, groups, count, runs, x, to, pixels);
}

static inline int32_t nn_vpu_groups(int32_t channels) {
    return (channels + NN_VPU_ACC - 1) / NN_VPU_ACC;
}

/* Times that a group's lanes are multiplied. */
static inline int32_t nn_vpu_chunks(int32_t inputs) {
    return (inputs + NN_VPU_BYTES - 1) / NN_VPU_BYTES;
}

/* Bytes of a channel's weights. */
static inline int32_t nn_vpu_row_bytes(int32_t inputs) {
    return (inputs + 3) / 4 * 4;
}

/* A batch of groups from number `first` on, an even one, of those of `channels` output channels,
 * whose rows of weights have `row_bytes` each. It was the batch before, or it is new. */
static inline void nn_vpu_members(nn_vpu *v, const nn_vpu_block *b, int32_t channels,
                                  int32_t row_bytes, int32_t first, int32_t count,
                                  nn_vpu_group *groups) {
    int32_t ahead = NN_VPU_BATCH * NN_VPU_ACC * row_bytes;
    NN_VPU_SCALAR(16);
    if (groups->bytes == 0 || (first + NN_VPU_BATCH) * NN_VPU_ACC > channels) {
        ahead = 0;
        for (int32_t i = 0; i < count; i++) {
            const int32_t place = (first + i) / 2 * NN_VPU_BYTES, left = channels - place;
            const nn_vpu_order order = (i & 1)             ? NN_VPU_ODD
                                       : left > NN_VPU_ACC ? NN_VPU_EVEN
                                                           : NN_VPU_ALONE;
            const int32_t apart = order == NN_VPU_ALONE ? 1 : 2; /* channels from lane to lane */
            const int32_t last = place + (i & 1) + (NN_VPU_ACC - 1) * apart;
            nn_vpu_place(groups + i, b, order, place, nn_min(left, NN_VPU_BYTES));
            groups[i].weights = b->weights + last * row_bytes;
            groups[i].step = apart * row_bytes;
            NN_VPU_SCALAR(30);
        }
    }
    nn_vpu_ready(v, groups, b->records + first, count, ahead);
}

/* The output channels of a narrow slice: up to 16, some of those of a pair of groups, or of a last
 * group without a partner.
 *
 * A slice has its own rows of weights alone, and all records of its pair. Whole groups are
 * computed, and the slice's channels are stored. */
typedef struct {
    nn_vpu_group group[2];
    int32_t number;    /* the first group that has channels */
    int32_t count;     /* groups that have */
    int32_t first;     /* channel of the pair */
    int32_t in_memory; /* see nn_vpu_rows_in_memory */
} nn_vpu_few;

/* Whether all rows of a pair can be read although only some were loaded, as functions in assembly
 * do: the others are multiplied with lanes whose outputs are not stored. */
static inline int nn_vpu_rows_in_memory(const int8_t *rows, int32_t first, int32_t row_bytes) {
#ifdef __XS3A__
    const int32_t before = first * row_bytes, behind = (NN_VPU_BYTES - first) * row_bytes;
    const int32_t at = (int32_t)(uintptr_t)rows;
    return at >= (int32_t)NN_VPU_RAM + before + NN_VPU_BYTES &&
           at <= (int32_t)NN_VPU_RAM_END - behind - NN_VPU_BYTES;
#else
    (void)rows;
    (void)first;
    (void)row_bytes;
    return 1;
#endif
}

/* Whether a block's first group has a partner. */
static inline int nn_vpu_of_pair(const void *constants) {
    const nn_conv_constants *common = (const nn_conv_constants *)constants;
    return ((const nn_vpu_record *)(const void *)(common + 1))->mode & NN_VPU_MODE_PAIR;
}

/* Opens the block of a narrow slice, which has the records of its pair. */
static inline nn_vpu_block nn_vpu_open_of_few(const void *constants) {
    return nn_vpu_open(constants, nn_vpu_of_pair(constants) ? 2 : 1);
}

/* Whether a call for `channels` output channels has a narrow slice, from `channel` on. A last group
 * without a partner may lack the rows that fill it up; not if it is all of a block. */
static inline int nn_vpu_is_few(const void *constants, int32_t channels, int32_t channel) {
    NN_VPU_SCALAR(8);
    return channels <= NN_VPU_ACC &&
           (nn_vpu_of_pair(constants) || (channel > 0 && channels < NN_VPU_ACC) ||
            channel % NN_VPU_BYTES > 0);
}

/* Opens a narrow slice of a block that nn_vpu_open_of_few opened; rows of weights have `row_bytes`
 * each. */
static inline void nn_vpu_open_few(nn_vpu *v, nn_vpu_few *few, const nn_vpu_block *b,
                                   int32_t channels, int32_t channel, int32_t row_bytes) {
    const int32_t first = channel % NN_VPU_BYTES, end = first + channels;
    const int32_t apart = b->records->mode & NN_VPU_MODE_PAIR ? 2 : 1; /* channels a lane */
    nn_vpu_open_groups(few->group, apart, b);
    nn_vpu_ready(v, few->group, b->records, apart, 0);
    for (int32_t i = 0; i < apart; i++) {
        const nn_vpu_order order = apart == 1 ? NN_VPU_ALONE : i == 0 ? NN_VPU_EVEN : NN_VPU_ODD;
        nn_vpu_group *group = &few->group[i];
        nn_vpu_place(group, b, order, 0, end);
        group->mask &= 0xFFFFFFFFU << first;
        group->skip = (first - i + apart - 1) / apart;
        group->step = apart * row_bytes;
        group->weights = b->weights + (i + (NN_VPU_ACC - 1) * apart - first) * row_bytes;
    }
    few->first = first;
    few->count = channels < apart ? 1 : apart;
    few->number = channels < apart ? first % apart : 0;
    few->in_memory = nn_vpu_rows_in_memory(b->weights, first, row_bytes);
    NN_VPU_SCALAR(56);
}

/* A narrow slice's outputs of `pixels` pixels: see nn_vpu_pixels. */
static inline void nn_vpu_pixels_few(nn_vpu *v, const nn_vpu_block *b, const nn_vpu_few *few,
                                     const nn_vpu_runs *runs, const int8_t *x, int8_t *to,
                                     int32_t pixels) {
    const nn_vpu_group *groups = few->group + few->number;
    if (few->in_memory) {
        nn_vpu_pixels(v, b, groups, few->count, runs, x, to - few->first, pixels);
    } else {
        nn_vpu_each_pixel(v, b, groups, few->count, runs, x, to - few->first, pixels);
    }
}

#endif
