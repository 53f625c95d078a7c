/* Depthwise convolutions of one kernel size: what their files share.
 *
 * Four channels ("block") of a row are computed at a time. What the taps of a column meet is
 * brought into scratch first, for as many columns as a run of outputs needs: of rows 0 and 1 the
 * words (row 0, row 1) of each channel, so for every two rows; of a last odd row the words (channel
 * 0, channel 2) and (channel 1, channel 3). Padding is in there as well: the loop over outputs
 * meets no border. The weights of a block are widened to words of the same order, column by column
 * of taps.
 *
 * Packed constants: nn_dsp_constants; for each block 4 nn_dsp_channel, then its weights as int8.
 * Where the channels are no multiple of 4, the last block is moved back to end with them.
 */
#ifndef NN_DSP_DEPTHWISE_H
#define NN_DSP_DEPTHWISE_H

#include "nn_dsp.h"

#define NN_DSP_MAX_ROWS 7 /* of the kernel */
#define NN_DSP_FEW 3      /* outputs of a run that are computed one by one */

/* A run of outputs of one block; the assembly knows the order. */
typedef struct {
    const uint32_t *x, *taps; /* columns in scratch; widened weights */
    const nn_dsp_channel *channels;
    int8_t *out, *end;
    int32_t advance; /* bytes from the end of one output's columns to the next one's */
    int32_t step;    /* bytes from output to output */
} nn_dsp_run;

/* Puts `count` columns into scratch; `rows`: the kernel's rows of input, `place`: bytes from their
 * starts to the first column's first channel, `step`: from column to column. */
typedef void nn_dsp_fill(uint32_t *to, const int8_t *const rows[], int32_t place, int32_t step,
                         int32_t count);

/* One kernel size. */
typedef struct {
    int32_t size; /* rows, and columns */
    int32_t run;  /* outputs along a row whose columns are in scratch together */
    void (*compute)(const nn_dsp_run *run);
    nn_dsp_fill *fill; /* where no row is padding; or NULL */
} nn_dsp_depthwise_kind;

/* Words of a column. */
static inline int32_t nn_dsp_column_words(int32_t rows) {
    return 4 * (rows / 2) + 2 * (rows % 2);
}

static inline int32_t nn_dsp_depthwise_bytes(const nn_dsp_depthwise_kind *kind, int32_t stride_w,
                                             int32_t out_width) {
    const int32_t columns = (nn_min(out_width, kind->run) - 1) * stride_w + kind->size;
    return 4 * nn_dsp_column_words(kind->size) * (columns + kind->size);
}

/* Computes one output's sums from its columns. */
static inline void nn_dsp_sum_columns(int32_t sums[NN_DSP_BLOCK], const uint32_t *x,
                                      const uint32_t *w, int32_t size) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t column = 0; column < size; column++) {
        for (int32_t row = 1; row < size; row += 2, x += 4, w += 4) {
            s0 = nn_smlad(x[0], w[0], s0);
            s1 = nn_smlad(x[1], w[1], s1);
            s2 = nn_smlad(x[2], w[2], s2);
            s3 = nn_smlad(x[3], w[3], s3);
        }
        if (size % 2 != 0) {
            s0 = nn_smlabb(x[0], w[0], s0);
            s1 = nn_smlabb(x[1], w[1], s1);
            s2 = nn_smlatt(x[0], w[0], s2);
            s3 = nn_smlatt(x[1], w[1], s3);
            x += 2;
            w += 2;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* Four outputs of general channels, clamped. */
NN_OUTLINE void nn_dsp_put_general(int8_t *out, const int32_t sums[NN_DSP_BLOCK],
                                   const nn_dsp_channel *channels,
                                   const nn_conv_constants *common) {
    for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
        out[i] = nn_dsp_general_output(sums[i], channels + i, common);
    }
}

/* A run whose channels are general; clamped. */
NN_OUTLINE void nn_dsp_general_run(const nn_dsp_run *run, int32_t size,
                                   const nn_conv_constants *common) {
    const int32_t words = nn_dsp_column_words(size) * size + run->advance / 4;
    const uint32_t *x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step, x += words) {
        int32_t sums[NN_DSP_BLOCK];
        nn_dsp_sum_columns(sums, x, run->taps, size);
        nn_dsp_put_general(out, sums, run->channels, common);
    }
}

#if NN_DSP

#define NN_DSP_ASSEMBLY __attribute__((naked, noinline))
/* r0: columns, r1: weights or channels, r2 to r9: two rows of a column and their weights, r10 to
 * lr: sums; stack: nn_dsp_run. */
#define NN_DSP_RUN_BEGIN                                                                           \
    "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"                                                \
    "ldmia r0, {r0, r1, r2, r3, r4, r5, r6}\n"                                                     \
    "push {r0, r1, r2, r3, r4, r5, r6}\n"                                                          \
    "1: ldr r1, [sp, #4]\n"
#define NN_DSP_ZERO_SUMS "mov r10, #0\n mov r11, #0\n mov r12, #0\n mov lr, #0\n"
#define NN_DSP_FIRST_TWO_ROWS                                                                      \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                \
    "ldmia r1!, {r6, r7, r8, r9}\n"                                                                \
    "smuad r10, r2, r6\n"                                                                          \
    "smuad r11, r3, r7\n"                                                                          \
    "smuad r12, r4, r8\n"                                                                          \
    "smuad lr, r5, r9\n"
#define NN_DSP_TWO_ROWS                                                                            \
    "ldmia r0!, {r2, r3, r4, r5}\n"                                                                \
    "ldmia r1!, {r6, r7, r8, r9}\n"                                                                \
    "smlad r10, r2, r6, r10\n"                                                                     \
    "smlad r11, r3, r7, r11\n"                                                                     \
    "smlad r12, r4, r8, r12\n"                                                                     \
    "smlad lr, r5, r9, lr\n"
#define NN_DSP_LAST_ROW                                                                            \
    "ldrd r2, r3, [r0], #8\n"                                                                      \
    "ldrd r6, r7, [r1], #8\n"                                                                      \
    "smlabb r10, r2, r6, r10\n"                                                                    \
    "smlabb r11, r3, r7, r11\n"                                                                    \
    "smlatt r12, r2, r6, r12\n"                                                                    \
    "smlatt lr, r3, r7, lr\n"
/* Four outputs, see nn_dsp_channel, in place of their sums: t = bias + 2 * sum, a step = offset +
 * (t
 * >> 31) in r6 or r7, t * multiplier + step, shifted and saturated. r2 to r5: a channel; the next
 * one is loaded when the shift has been used, and the output before it is stored meanwhile, so that
 * a Cortex-M7 has two instructions for most cycles. Then r2 to r4: what leads to the next output,
 * and where the last one is. r9: the output. */
#define NN_DSP_RUN_END                                                                             \
    "ldrd r1, r9, [sp, #8]\n"                                                                      \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r10, r2, r10, lsl #1\n"                                                                   \
    "add r6, r4, r10, asr #31\n"                                                                   \
    "smmlar r10, r10, r3, r6\n"                                                                    \
    "asr.w r10, r10, r5\n"                                                                         \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r11, r2, r11, lsl #1\n"                                                                   \
    "add r7, r4, r11, asr #31\n"                                                                   \
    "smmlar r11, r11, r3, r7\n"                                                                    \
    "asr.w r11, r11, r5\n"                                                                         \
    "ssat r11, #8, r11\n"                                                                          \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add r12, r2, r12, lsl #1\n"                                                                   \
    "strb r11, [r9, #1]\n"                                                                         \
    "ssat r10, #8, r10\n"                                                                          \
    "add r6, r4, r12, asr #31\n"                                                                   \
    "smmlar r12, r12, r3, r6\n"                                                                    \
    "asr.w r12, r12, r5\n"                                                                         \
    "ldmia r1!, {r2, r3, r4, r5}\n"                                                                \
    "add lr, r2, lr, lsl #1\n"                                                                     \
    "ssat r12, #8, r12\n"                                                                          \
    "strb r10, [r9, #0]\n"                                                                         \
    "add r7, r4, lr, asr #31\n"                                                                    \
    "smmlar lr, lr, r3, r7\n"                                                                      \
    "ldrd r2, r3, [sp, #20]\n"                                                                     \
    "ldr r4, [sp, #16]\n"                                                                          \
    "asr.w lr, lr, r5\n"                                                                           \
    "ssat lr, #8, lr\n"                                                                            \
    "strb r12, [r9, #2]\n"                                                                         \
    "strb lr, [r9, #3]\n"                                                                          \
    "add r0, r0, r2\n"                                                                             \
    "add r9, r9, r3\n"                                                                             \
    "cmp r9, r4\n"                                                                                 \
    "str r9, [sp, #12]\n"                                                                          \
    "bne.w 1b\n"                                                                                   \
    "add sp, #28\n"                                                                                \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

#else

/* The same arithmetic, step by step. */
static inline void nn_dsp_compute_run(const nn_dsp_run *run, int32_t size) {
    const int32_t words = nn_dsp_column_words(size) * size + run->advance / 4;
    const uint32_t *x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step, x += words) {
        int32_t sums[NN_DSP_BLOCK];
        nn_dsp_sum_columns(sums, x, run->taps, size);
        for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
            out[i] = (int8_t)nn_dsp_output(sums[i], run->channels + i);
        }
    }
}

#endif

/* ---- columns ----------------------------------------------------------------------------------
 */

/* Words of four channels of two rows, or of the last one. */
static inline void nn_dsp_put_two(uint32_t *x, uint32_t a, uint32_t b) {
    const uint32_t a02 = nn_sxtb16(a), a13 = nn_sxtb16_ror8(a);
    const uint32_t b02 = nn_sxtb16(b), b13 = nn_sxtb16_ror8(b);
    x[0] = nn_pkhbt(a02, b02);
    x[1] = nn_pkhbt(a13, b13);
    x[2] = nn_pkhtb(b02, a02);
    x[3] = nn_pkhtb(b13, a13);
}

static inline void nn_dsp_put_last(uint32_t *x, uint32_t a) {
    x[0] = nn_sxtb16(a);
    x[1] = nn_sxtb16_ror8(a);
}

/* `count` columns of two rows; `a`: the first one's, `apart`: bytes to the second one's, `ahead`:
 * bytes from a column's words to the next one's. */
#if NN_DSP
NN_DSP_ASSEMBLY __attribute__((unused)) static void
nn_dsp_fill_two(__attribute__((unused)) uint32_t *x, __attribute__((unused)) const int8_t *a,
                __attribute__((unused)) ptrdiff_t apart, __attribute__((unused)) int32_t step,
                __attribute__((unused)) int32_t count, __attribute__((unused)) int32_t ahead) {
    __asm volatile("push {r4, r5, r6, r7, r8, lr}\n"
                   "ldrd r12, lr, [sp, #24]\n" /* count, ahead */
                   "1: ldr r5, [r1]\n"
                   "ldr r7, [r1, r2]\n"
                   "add r1, r1, r3\n"
                   "sxtb16 r6, r5, ror #8\n"
                   "sxtb16 r8, r7, ror #8\n"
                   "sxtb16 r7, r7\n"
                   "sxtb16 r5, r5\n"
                   "pkhbt r4, r5, r7, lsl #16\n"
                   "pkhtb r7, r7, r5, asr #16\n"
                   "pkhbt r5, r6, r8, lsl #16\n"
                   "subs r12, r12, #1\n"
                   "pkhtb r8, r8, r6, asr #16\n"
                   "stmia.w r0, {r4, r5, r7, r8}\n"
                   "add r0, r0, lr\n"
                   "bne 1b\n"
                   "pop {r4, r5, r6, r7, r8, pc}\n");
}
#else
static inline void nn_dsp_fill_two(uint32_t *x, const int8_t *a, ptrdiff_t apart, int32_t step,
                                   int32_t count, int32_t ahead) {
    for (; count > 0; count--, x += ahead / 4, a += step) {
        nn_dsp_put_two(x, nn_load4(a), nn_load4(a + apart));
    }
}
#endif

/* The same where one of the rows, or both, are padding. */
static inline void nn_dsp_fill_two_padded(uint32_t *x, const int8_t *a, const int8_t *b,
                                          uint32_t padding, int32_t step, int32_t count,
                                          int32_t words) {
    if (a != NULL) {
        for (; count > 0; count--, x += words, a += step) {
            nn_dsp_put_two(x, nn_load4(a), padding);
        }
    } else if (b != NULL) {
        for (; count > 0; count--, x += words, b += step) {
            nn_dsp_put_two(x, padding, nn_load4(b));
        }
    } else {
        for (; count > 0; count--, x += words) {
            nn_dsp_put_two(x, padding, padding);
        }
    }
}

static inline const int8_t *nn_dsp_at(const int8_t *row, int32_t place) {
    return row == NULL ? NULL : row + place;
}

/* Puts `count` columns into scratch, as an nn_dsp_fill; rows may be NULL: padding, four times its
 * value given. */
NN_OUTLINE void nn_dsp_fill_rows(uint32_t *to, const int8_t *const rows[], int32_t place,
                                 int32_t step, int32_t count, int32_t size, uint32_t padding) {
    const int32_t words = nn_dsp_column_words(size);
    int32_t row = 0;
    for (; row + 1 < size; row += 2, to += 4) {
        const int8_t *a = nn_dsp_at(rows[row], place), *b = nn_dsp_at(rows[row + 1], place);
        if (a != NULL && b != NULL) {
            nn_dsp_fill_two(to, a, b - a, step, count, 4 * words);
        } else {
            nn_dsp_fill_two_padded(to, a, b, padding, step, count, words);
        }
    }
    if (row < size) {
        const int8_t *last = nn_dsp_at(rows[row], place);
        for (int32_t i = 0; i < count; i++, to += words) {
            nn_dsp_put_last(to, last == NULL ? padding : nn_load4(last + i * step));
        }
    }
}

/* ---- outputs ----------------------------------------------------------------------------------
 */

/* The weights of a block as words, two of which come from each of `count` words: one more than a
 * multiple of four, as is the square of an odd number. Returns where the weights end. */
#if NN_DSP
NN_DSP_ASSEMBLY __attribute__((unused)) static const int8_t *
nn_dsp_widen_taps(__attribute__((unused)) uint32_t *to,
                  __attribute__((unused)) const int8_t *weights,
                  __attribute__((unused)) int32_t count) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, lr}\n"
                   "1: ldmia.w r1!, {r3, r5, r7, r9}\n"
                   "sxtb16 r4, r3, ror #8\n"
                   "sxtb16 r3, r3\n"
                   "sxtb16 r6, r5, ror #8\n"
                   "sxtb16 r5, r5\n"
                   "sxtb16 r8, r7, ror #8\n"
                   "sxtb16 r7, r7\n"
                   "sxtb16 r10, r9, ror #8\n"
                   "sxtb16 r9, r9\n"
                   "subs r2, #4\n"
                   "stmia.w r0!, {r3, r4, r5, r6, r7, r8, r9, r10}\n"
                   "cmp r2, #1\n"
                   "bne 1b\n"
                   "ldr r3, [r1], #4\n"
                   "sxtb16 r4, r3, ror #8\n"
                   "sxtb16 r3, r3\n"
                   "strd r3, r4, [r0]\n"
                   "mov r0, r1\n"
                   "pop {r4, r5, r6, r7, r8, r9, r10, pc}\n");
}
#else
static inline const int8_t *nn_dsp_widen_taps(uint32_t *to, const int8_t *weights, int32_t count) {
    for (; count > 0; count--, weights += 4, to += 2) {
        const uint32_t word = nn_load4(weights);
        to[0] = nn_sxtb16(word);
        to[1] = nn_sxtb16_ror8(word);
    }
    return weights;
}
#endif

/* Columns of input that lie one behind the other in memory, and where they go. */
typedef struct {
    uint32_t *to;
    int32_t place; /* bytes from a row's start */
    int32_t count;
} nn_dsp_piece;

/* What a call works on; the row and its piece of columns change. */
typedef struct {
    const nn_dsp_depthwise_kind *kind;
    const nn_dsp_constants *constants;
    const nn_view *in, *out;
    uint32_t *taps, *columns;
    const int8_t *rows[NN_DSP_MAX_ROWS]; /* starts of the column windows; NULL: padding */
    int border;                          /* whether one is NULL */
    nn_dsp_piece pieces[2];              /* a column window wraps around once at most */
} nn_dsp_depthwise;

/* Finds the pieces of columns [left, left + count), and puts padding around them. */
static inline void nn_dsp_find_columns(nn_dsp_depthwise *d, int32_t left, int32_t count) {
    const nn_view *in = d->in;
    const int32_t words = nn_dsp_column_words(d->kind->size);
    const uint32_t padding = nn_times2(d->constants->common.input_zero_point);
    const int32_t first = nn_max(left, 0), end = nn_max(nn_min(left + count, in->width), first);
    const int32_t run = first < end ? nn_run(in, first, end - first) : 0;
    uint32_t *inside = d->columns + (first - left) * words;
    uint32_t *behind = d->columns + (end - left) * words, *stop = d->columns + count * words;
    d->pieces[0].to = inside;
    d->pieces[0].place = first < end ? nn_column(in, first) * in->pixel_stride : 0;
    d->pieces[0].count = run;
    d->pieces[1].to = inside + run * words;
    d->pieces[1].place = 0;
    d->pieces[1].count = end - first - run;
    for (uint32_t *to = d->columns; to < inside && to < stop; to++) {
        *to = padding;
    }
    for (; behind < stop; behind++) {
        *behind = padding;
    }
}

/* Puts a block's columns into scratch; `c`: its first channel. */
static inline void nn_dsp_fill_block(const nn_dsp_depthwise *d, int32_t c) {
    const int32_t step = d->in->pixel_stride;
    for (int32_t i = 0; i < 2; i++) {
        const nn_dsp_piece *piece = &d->pieces[i];
        const int32_t place = piece->place + c;
        if (piece->count == 0) {
            continue;
        }
        if (d->border || d->kind->fill == NULL) {
            nn_dsp_fill_rows(piece->to, d->rows, place, step, piece->count, d->kind->size,
                             nn_times4(d->constants->common.input_zero_point));
        } else {
            d->kind->fill(piece->to, d->rows, place, step, piece->count);
        }
    }
}

/* All channels of `count` outputs, whose columns have been found. */
static inline void nn_dsp_compute_columns(const nn_dsp_depthwise *d, int8_t *out, int32_t count,
                                          int32_t stride) {
    const nn_dsp_depthwise_kind *kind = d->kind;
    const int32_t size = kind->size, words = nn_dsp_column_words(size);
    const int32_t channels = d->in->channels, step = d->out->pixel_stride;
    const int8_t *block = (const int8_t *)(d->constants + 1);
    nn_dsp_run run = {d->columns, d->taps, NULL, out, NULL, 4 * words * (stride - size), step};
    for (int32_t start = 0; start < channels; start += NN_DSP_BLOCK) {
        const int32_t c = nn_min(start, channels - NN_DSP_BLOCK);
        run.channels = (const nn_dsp_channel *)(const void *)block;
        run.out = out + c;
        run.end = run.out + count * step;
        block += NN_DSP_BLOCK * sizeof(nn_dsp_channel);
        block = nn_dsp_widen_taps(d->taps, block, size * size);
        nn_dsp_fill_block(d, c);
        if (c >= d->constants->general_first && c < d->constants->general_end) {
            nn_dsp_general_run(&run, size, &d->constants->common);
        } else {
            kind->compute(&run);
        }
    }
    nn_dsp_clamp_pixels(out, count, channels, step, &d->constants->common);
}

/* ---- few outputs ------------------------------------------------------------------------------
 * A run of few outputs uses its columns and its widened weights too seldom to be worth writing them
 * to scratch: they are widened where they are used. */

/* The sums of one output of four channels; `columns`: bytes from the rows' starts. */
static inline void nn_dsp_sum_inputs(int32_t sums[NN_DSP_BLOCK], const int8_t *const rows[],
                                     const int32_t *columns, int32_t c, const int8_t *weights,
                                     int32_t size) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t column = 0; column < size; column++) {
        const int32_t place = columns[column] + c;
        int32_t row = 0;
        for (; row + 1 < size; row += 2, weights += 8) {
            uint32_t x[4];
            const uint32_t w0 = nn_load4(weights), w1 = nn_load4(weights + 4);
            nn_dsp_put_two(x, nn_load4(rows[row] + place), nn_load4(rows[row + 1] + place));
            s0 = nn_smlad(x[0], nn_sxtb16(w0), s0);
            s1 = nn_smlad(x[1], nn_sxtb16_ror8(w0), s1);
            s2 = nn_smlad(x[2], nn_sxtb16(w1), s2);
            s3 = nn_smlad(x[3], nn_sxtb16_ror8(w1), s3);
        }
        if (row < size) {
            const uint32_t a = nn_load4(rows[row] + place), w = nn_load4(weights);
            const uint32_t a02 = nn_sxtb16(a), a13 = nn_sxtb16_ror8(a);
            const uint32_t w02 = nn_sxtb16(w), w13 = nn_sxtb16_ror8(w);
            s0 = nn_smlabb(a02, w02, s0);
            s1 = nn_smlabb(a13, w13, s1);
            s2 = nn_smlatt(a02, w02, s2);
            s3 = nn_smlatt(a13, w13, s3);
            weights += 4;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* All channels of one output, all of whose taps meet the input, the first of them column `left`. */
static inline void nn_dsp_compute_one(const nn_dsp_depthwise *d, int32_t left, int8_t *out,
                                      int32_t size) {
    const nn_view *in = d->in;
    const int32_t channels = in->channels, step = in->pixel_stride;
    const int8_t *block = (const int8_t *)(d->constants + 1);
    int32_t columns[NN_DSP_MAX_ROWS];
    int32_t place = nn_column(in, left) * step;
    for (int32_t i = 0; i < size; i++) {
        columns[i] = place;
        place += step;
        place = place == in->ring_cols * step ? 0 : place;
    }
    for (int32_t start = 0; start < channels; start += NN_DSP_BLOCK) {
        const int32_t c = nn_min(start, channels - NN_DSP_BLOCK);
        const nn_dsp_channel *channel = (const nn_dsp_channel *)(const void *)block;
        const int general = c >= d->constants->general_first && c < d->constants->general_end;
        int32_t sums[NN_DSP_BLOCK];
        block += NN_DSP_BLOCK * sizeof(nn_dsp_channel);
        nn_dsp_sum_inputs(sums, d->rows, columns, c, block, size);
        block += NN_DSP_BLOCK * size * size;
        for (int32_t i = 0; i < NN_DSP_BLOCK && !general; i++) {
            out[c + i] = (int8_t)nn_dsp_output(sums[i], channel + i);
        }
        if (general) {
            nn_dsp_put_general(out + c, sums, channel, &d->constants->common);
        }
    }
    nn_dsp_clamp(out, channels, d->constants->common.clamp_min, d->constants->common.clamp_max);
}

static inline void nn_dsp_find_rows(nn_dsp_depthwise *d, int32_t top) {
    d->border = 0;
    for (int32_t i = 0; i < d->kind->size; i++) {
        const int inside = top + i >= 0 && top + i < d->in->height;
        d->rows[i] = inside ? nn_row(d->in, top + i) : NULL;
        d->border |= !inside;
    }
}

static inline void nn_dsp_depthwise_rows(const nn_dsp_depthwise_kind *kind,
                                         const nn_conv_geometry *geometry, const void *constants,
                                         const nn_view *in, const nn_view *out,
                                         const nn_window *window, void *scratch) {
    const int32_t stride = geometry->stride_w;
    nn_dsp_depthwise d;
    d.kind = kind;
    d.constants = (const nn_dsp_constants *)constants;
    d.in = in;
    d.out = out;
    d.taps = (uint32_t *)scratch;
    d.columns = d.taps + nn_dsp_column_words(kind->size) * kind->size;
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t count;
        nn_dsp_find_rows(&d, y * geometry->stride_h - geometry->pad_top);
        for (int32_t x = window->x0; x < window->x1; x += count) {
            const int32_t left = x * stride - geometry->pad_left;
            count = nn_run(out, x, nn_min(kind->run, window->x1 - x));
            if (count <= NN_DSP_FEW && !d.border && left >= 0 && left + kind->size <= in->width) {
                nn_dsp_compute_one(&d, left, nn_pixel(out, y, x), kind->size);
                count = 1;
                continue;
            }
            nn_dsp_find_columns(&d, left, (count - 1) * stride + kind->size);
            nn_dsp_compute_columns(&d, nn_pixel(out, y, x), count, stride);
        }
    }
}

#endif
