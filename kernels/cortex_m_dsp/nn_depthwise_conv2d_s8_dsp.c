/* DEPTHWISE_CONV_2D of any window, depth multiplier 1: four channels by pairs of taps.
 *
 * Where all taps of a run of outputs meet the input, and no ring cuts them, they lie at the same
 * offsets from the first one. Other outputs are computed one by one, from the addresses of their
 * taps. A signal of one column whose window has one too is computed as a row, unless the output
 * lies over the input.
 *
 * Packed constants: as nn_dsp_depthwise.h has them, for a window of one column that holds all taps
 * row by row. Scratch: a pixel of padding, then the places of all taps.
 */
#include "nn_dsp_run.h"
#include "nn_dsp_taps.h"
#include "nn_groups.h"

/* A run of outputs of four channels; the assembly knows the order. */
typedef struct {
    nn_dsp_place x; /* of the first output's first tap */
    const int8_t *weights;
    const nn_dsp_channel *channels;
    int8_t *out, *end;
    int32_t advance, step; /* bytes from output to output, of the input and of the output */
    const nn_dsp_place *places;
    int32_t pairs, odd; /* of taps; whether there is one more */
} run_of_four;

#if NN_DSP
/* The loop over the outputs.
 *
 *   r0, r1, r2   x, places, weights; r1, r2 are read forward
 *   r3           pairs left
 *   r4 to r9     two taps' places, inputs, halves; weights
 *   r10 to lr    sums of the four channels
 *   stack        the first 7 words of the run; the run's address in place of x
 */
NN_DSP_ASSEMBLY static void compute_run(__attribute__((unused)) const run_of_four *run) {
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
                   "mov r7, r0\n"
                   "ldmia r0, {r0, r1, r2, r3, r4, r5, r6}\n"
                   "push {r0, r1, r2, r3, r4, r5, r6}\n"
                   "str r7, [sp]\n"
                   "1: ldrd r3, r2, [sp]\n"
                   "ldrd r1, r3, [r3, #28]\n" NN_DSP_ZERO_SUMS "cbz r3, 3f\n"
                   "2: ldrd r4, r5, [r1], #8\n"
                   "ldr r4, [r0, r4]\n"
                   "ldr r5, [r0, r5]\n"
                   "ldr r7, [r2], #4\n"
                   "sxtb16 r8, r4\n"
                   "sxtb16 r9, r5\n"
                   "sxtb16 r4, r4, ror #8\n"
                   "pkhbt r6, r8, r9, lsl #16\n"
                   "sxtb16 r5, r5, ror #8\n"
                   "pkhtb r9, r9, r8, asr #16\n"
                   "sxtb16 r8, r7\n"
                   "subs r3, r3, #1\n"
                   "sxtb16 r7, r7, ror #8\n"
                   "smlad r10, r6, r8, r10\n"
                   "pkhbt r6, r4, r5, lsl #16\n"
                   "ldr r8, [r2], #4\n"
                   "pkhtb r5, r5, r4, asr #16\n"
                   "smlad r11, r6, r7, r11\n"
                   "sxtb16 r7, r8\n"
                   "sxtb16 r8, r8, ror #8\n"
                   "smlad r12, r9, r7, r12\n"
                   "smlad lr, r5, r8, lr\n"
                   "bne 2b\n"
                   "3: ldr r3, [sp]\n"
                   "ldr r3, [r3, #36]\n"
                   "cbz r3, 4f\n"
                   "ldr r4, [r1]\n"
                   "ldr r5, [r2]\n"
                   "ldr r4, [r0, r4]\n"
                   "sxtb16 r6, r5\n"
                   "sxtb16 r5, r5, ror #8\n"
                   "sxtb16 r8, r4\n"
                   "sxtb16 r4, r4, ror #8\n"
                   "smlabb r10, r8, r6, r10\n"
                   "smlatt r12, r8, r6, r12\n"
                   "smlabb r11, r4, r5, r11\n"
                   "smlatt lr, r4, r5, lr\n"
                   "4:\n" NN_DSP_RUN_END);
}
#endif

/* The sums of the output whose first tap is at x. */
static inline void sum_taps(int32_t sums[NN_DSP_BLOCK], const run_of_four *run, nn_dsp_place x) {
    const nn_dsp_place *place = run->places;
    const int8_t *w = run->weights;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int32_t i = 0; i < run->pairs; i++, place += 2, w += 8) {
        uint32_t both[4];
        const uint32_t w0 = nn_load4(w), w1 = nn_load4(w + 4);
        nn_dsp_put_two(both, nn_load4(nn_dsp_at_place(x, place[0])),
                       nn_load4(nn_dsp_at_place(x, place[1])));
        s0 = nn_smlad(both[0], nn_sxtb16(w0), s0);
        s1 = nn_smlad(both[1], nn_sxtb16_ror8(w0), s1);
        s2 = nn_smlad(both[2], nn_sxtb16(w1), s2);
        s3 = nn_smlad(both[3], nn_sxtb16_ror8(w1), s3);
    }
    if (run->odd) {
        const uint32_t a = nn_load4(nn_dsp_at_place(x, place[0])), last = nn_load4(w);
        s0 = nn_smlabb(nn_sxtb16(a), nn_sxtb16(last), s0);
        s1 = nn_smlabb(nn_sxtb16_ror8(a), nn_sxtb16_ror8(last), s1);
        s2 = nn_smlatt(nn_sxtb16(a), nn_sxtb16(last), s2);
        s3 = nn_smlatt(nn_sxtb16_ror8(a), nn_sxtb16_ror8(last), s3);
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

#if !NN_DSP
/* The same arithmetic, step by step. */
static void compute_run(const run_of_four *run) {
    nn_dsp_place x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step) {
        int32_t sums[NN_DSP_BLOCK];
        sum_taps(sums, run, x);
        for (int32_t i = 0; i < NN_DSP_BLOCK; i++) {
            out[i] = (int8_t)nn_dsp_output(sums[i], run->channels + i);
        }
        x += (nn_dsp_place)run->advance;
    }
}
#endif

/* A run whose channels are general; clamped. */
NN_OUTLINE void compute_general(const run_of_four *run, const nn_conv_constants *common) {
    nn_dsp_place x = run->x;
    for (int8_t *out = run->out; out != run->end; out += run->step) {
        int32_t sums[NN_DSP_BLOCK];
        sum_taps(sums, run, x);
        nn_dsp_put_general(out, sums, run->channels, common);
        x += (nn_dsp_place)run->advance;
    }
}

/* What a call works on. */
typedef struct {
    nn_conv_geometry geometry;
    nn_view in, out;
    const nn_dsp_constants *constants;
    const int8_t *padding;
    nn_dsp_place *places;
    int held; /* whether these are the offsets where no ring cuts the rows */
} layer;

/* All channels of `count` outputs, whose first tap is at x. */
NN_OUTLINE void compute_outputs(const layer *l, nn_dsp_place x, int8_t *out, int32_t count) {
    const nn_dsp_constants *constants = l->constants;
    const int32_t channels = l->in.channels, taps = l->geometry.kernel_h * l->geometry.kernel_w;
    const int8_t *block = (const int8_t *)(constants + 1);
    run_of_four run;
    run.step = l->out.pixel_stride;
    run.advance = l->geometry.stride_w * l->in.pixel_stride;
    run.places = l->places;
    run.pairs = taps / 2;
    run.odd = taps % 2;
    for (int32_t start = 0; start < channels; start += NN_DSP_BLOCK) {
        const int32_t c = nn_min(start, channels - NN_DSP_BLOCK);
        run.channels = (const nn_dsp_channel *)(const void *)block;
        run.weights = block + NN_DSP_BLOCK * sizeof(nn_dsp_channel);
        run.x = x + (nn_dsp_place)c;
        run.out = out + c;
        run.end = run.out + count * run.step;
        block = run.weights + NN_DSP_BLOCK * taps;
        if (c >= constants->general_first && c < constants->general_end) {
            compute_general(&run, &constants->common);
        } else {
            compute_run(&run);
        }
    }
    nn_dsp_clamp_pixels(out, count, channels, run.step, &constants->common);
}

/* Sets the places to the offsets of the taps from the first one, whose row is at `first` bytes. */
NN_OUTLINE void find_offsets(layer *l, int32_t first) {
    const nn_conv_geometry *g = &l->geometry;
    const int32_t ring = l->in.ring_rows * l->in.row_stride;
    const int32_t step = g->dilation_w * l->in.pixel_stride;
    const int32_t row_step = g->dilation_h % l->in.ring_rows * l->in.row_stride;
    const int is_cut = first + (g->kernel_h - 1) * g->dilation_h * l->in.row_stride >= ring;
    nn_dsp_place *to = l->places;
    int32_t offset = first;
    if (l->held && !is_cut) {
        return;
    }
    l->held = !is_cut;
    for (int32_t ky = 0; ky < g->kernel_h; ky++) {
        int32_t place = offset - first;
        for (int32_t kx = 0; kx < g->kernel_w; kx++, place += step) {
            *to++ = (nn_dsp_place)place;
        }
        offset += row_step;
        offset -= offset >= ring ? ring : 0;
    }
}

/* How many outputs, at most `wanted`, have all columns of taps in the input, none cut by its ring;
 * `left`: the first one's first column. */
static inline int32_t inside(const layer *l, int32_t left, int32_t wanted) {
    const int32_t reach = (l->geometry.kernel_w - 1) * l->geometry.dilation_w;
    int32_t room;
    if (left < 0 || left + reach >= l->in.width) {
        return 0;
    }
    room = nn_min(l->in.width - left, l->in.ring_cols - nn_column(&l->in, left)) - reach;
    return room <= 0 ? 0 : nn_min(wanted, (room - 1) / l->geometry.stride_w + 1);
}

NN_OUTLINE void compute_row(layer *l, int32_t y, int32_t x, int32_t end) {
    const nn_conv_geometry *g = &l->geometry;
    const int32_t top = y * g->stride_h - g->pad_top;
    const int rows_inside = top >= 0 && top + (g->kernel_h - 1) * g->dilation_h < l->in.height;
    int8_t *const row = nn_out_row(&l->out, y);
    for (int32_t count; x < end; x += count) {
        const int32_t left = x * g->stride_w - g->pad_left;
        int8_t *out = row + nn_column(&l->out, x) * l->out.pixel_stride;
        count = rows_inside ? inside(l, left, nn_run(&l->out, x, end - x)) : 0;
        if (count > 0) {
            find_offsets(l, nn_row_offset(&l->in, top));
            compute_outputs(l, nn_dsp_address(nn_pixel(&l->in, top, left)), out, count);
        } else {
            count = 1;
            l->held = 0;
            nn_dsp_find_taps(g, &l->in, top, left, l->padding, l->places);
            compute_outputs(l, 0, out, 1);
        }
    }
}

/* A view of one column as one row. */
static inline void turn(nn_view *view) {
    const int32_t row_stride = view->row_stride;
    view->row_stride = view->pixel_stride;
    view->pixel_stride = row_stride;
    view->ring_cols = view->ring_rows;
    view->ring_rows = 1;
    view->width = view->height;
    view->height = 1;
    view->x0 = 0;
}

int32_t nn_depthwise_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    (void)out;
    return nn_dsp_places_bytes(in->channels, geometry->kernel_h * geometry->kernel_w);
}

void nn_depthwise_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    nn_conv_geometry *g;
    layer l;
    l.geometry = *geometry;
    l.in = *in;
    l.out = *out;
    l.constants = (const nn_dsp_constants *)constants;
    l.padding = (const int8_t *)scratch;
    l.places = nn_dsp_fill_padding(scratch, in->channels, l.constants->common.input_zero_point);
    l.held = 0;
    g = &l.geometry;
    if (in->width == 1 && out->width == 1 && g->kernel_w == 1 && g->pad_left == 0 &&
        nn_apart(in, out)) {
        turn(&l.in);
        turn(&l.out);
        g->kernel_w = g->kernel_h;
        g->stride_w = g->stride_h;
        g->dilation_w = g->dilation_h;
        g->pad_left = g->pad_top;
        g->kernel_h = 1;
        g->stride_h = 1;
        g->dilation_h = 1;
        g->pad_top = 0;
        compute_row(&l, 0, window->y0, window->y1);
        return;
    }
    for (int32_t y = window->y0; y < window->y1; y++) {
        compute_row(&l, y, window->x0, window->x1);
    }
}
