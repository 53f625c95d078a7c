/* FULLY_CONNECTED: six outputs at a time, from inputs where they lie.
 *
 * Packed constants: nn_dsp_constants; a channel of each output; the weights in groups of rows, see
 * nn_dsp_dense.h.
 */
#include "nn_dsp_dense.h"

/* One output. With t = 16 * sum + bias and high = offset + floor(t * multiplier / 2^32) the output
 * is high >> down, saturated to int8, where offset = 2^(down - 1) + output_zero_point * 2^down and
 * down = 2 to 22. That leaves out the factor's low part, the product's lower half, and that halves
 * are rounded away from zero. Together these amount to less than one in `high`, either way: where
 * one more and one less give the same output, that is it. The four bits below a sum make the
 * others few; `bias` is 16 times nn_dense_channel's, and shift = 3 - down.
 *
 * With down = 1 one more and one less never give the same. Such is every channel of another shift,
 * or whose t may not fit: `bias` and `offset` are then nn_dense_channel's bias and shift.
 * `low_down`: 2^16 * (nn_dense_channel's low) + down. */
typedef struct {
    int32_t bias, multiplier, offset;
    uint32_t low_down;
} channel;

#define FEW 64 /* inputs: a second call for those at the end takes longer than copying them all */

/* One pixel's inputs: whole octets of them, and what is left with zeros behind it; few inputs are
 * octets altogether, in `tail`. */
typedef struct {
    const int8_t *x;
    int32_t octets, rest;
    int8_t tail[FEW];
    int32_t start; /* of each pair's sum: -128 times the inputs' */
} pixel;

/* Rows that are summed together. */
typedef struct {
    nn_dsp_add_group *add;
    int32_t pairs;
} group;

NN_OUTLINE int8_t output_exact(int32_t sum, const channel *c, const nn_conv_constants *common) {
    const int32_t down = (int32_t)(c->low_down & 31), low = (int32_t)(c->low_down >> 16);
    const int exact = down == 1;
    const nn_dense_channel plain = {exact ? c->bias : c->bias >> 4, c->multiplier,
                                    exact ? c->offset : 3 - down, low};
    return nn_dense_output(sum, &plain, common);
}

#if NN_DSP

/* Puts outputs, `count` at most and one at least, up to the first that takes exact arithmetic;
 * returns how many are left, that one with them. r0: sums, r1: channels, r2: outputs left, r3: out,
 * r4 to r7: a channel, then (r4) one output and (r5) what it were with two more in `high`. */
__attribute__((naked, noinline)) static int32_t
put_some(__attribute__((unused)) const int32_t *sums, __attribute__((unused)) const channel *c,
         __attribute__((unused)) int32_t count, __attribute__((unused)) int8_t *out) {
    __asm volatile("push {r4, r5, r6, r7}\n"
                   "1: ldr r12, [r0], #4\n"
                   "ldmia r1!, {r4, r5, r6, r7}\n"
                   "add r12, r4, r12, lsl #4\n"
                   "smmla r5, r12, r5, r6\n"
                   "sub r4, r5, #1\n"
                   "add r5, r5, #1\n"
                   "asr r4, r4, r7\n"
                   "asr r5, r5, r7\n"
                   "cmp r4, r5\n"
                   "bne 2f\n"
                   "ssat r4, #8, r4\n"
                   "strb r4, [r3], #1\n"
                   "subs r2, r2, #1\n"
                   "bne 1b\n"
                   "2: mov r0, r2\n"
                   "pop {r4, r5, r6, r7}\n"
                   "bx lr\n");
}

#else

/* The same arithmetic, step by step. */
static int32_t put_some(const int32_t *sums, const channel *c, int32_t count, int8_t *out) {
    for (; count > 0; count--, c++, sums++, out++) {
        const int32_t high = nn_smmla(nn_wrapping_add((int32_t)((uint32_t)*sums << 4), c->bias),
                                      c->multiplier, c->offset);
        const int32_t down = (int32_t)(c->low_down & 31), scaled = (high - 1) >> down;
        if (scaled != (high + 1) >> down) {
            break;
        }
        *out = (int8_t)nn_ssat8(scaled);
    }
    return count;
}

#endif

/* The sums as outputs. */
static inline void put(const int32_t *sums, const channel *c, int32_t count,
                       const nn_conv_constants *common, int8_t *out) {
    int32_t done = 0;
    while (done < count) {
        done = count - put_some(sums + done, c + done, count - done, out + done);
        if (done < count) {
            out[done] = output_exact(sums[done], c + done, common);
            done++;
        }
    }
}

/* The rows' own sums of a group. */
NN_OUTLINE void sum_group(int32_t sums[NN_DSP_GROUP_ROWS], const group *g, const pixel *p,
                          const uint32_t *w) {
    const int32_t start = p->start;
    for (int32_t i = 0; i < NN_DSP_GROUP_ROWS; i += 2) {
        sums[i] = start;
        sums[i + 1] = 0;
    }
    if (p->octets > 0) {
        g->add(p->x, w, p->octets, sums);
    }
    if (p->rest > 0) {
        g->add(p->tail, w + 4 * g->pairs * p->octets, 1, sums);
    }
    for (int32_t i = 0; i < NN_DSP_GROUP_ROWS; i += 2) {
        sums[i] = (int32_t)((uint32_t)sums[i] - ((uint32_t)sums[i + 1] << 8));
    }
}

/* One pixel's outputs. */
static void compute(const nn_dsp_constants *constants, const pixel *p, int8_t *out,
                    int32_t outputs) {
    static const group groups[] = {{nn_dsp_add_one, 1}, {nn_dsp_add_two, 2}, {nn_dsp_add_three, 3}};
    const channel *channels = (const channel *)(const void *)(constants + 1);
    const uint32_t *w = (const uint32_t *)(const void *)(channels + outputs);
    const int32_t words = 2 * NN_DSP_GROUP_ROWS * (p->octets + (p->rest > 0));
    for (int32_t c = 0; c < outputs; c += NN_DSP_GROUP_ROWS, w += words) {
        const int32_t count = nn_min(NN_DSP_GROUP_ROWS, outputs - c);
        int32_t sums[NN_DSP_GROUP_ROWS];
        sum_group(sums, &groups[(count - 1) / 2], p, w);
        put(sums, channels + c, count, &constants->common, out + c);
    }
    nn_dsp_clamp(out, outputs, constants->common.clamp_min, constants->common.clamp_max);
}

/* Finds the octets of `inputs` inputs, and their sum. */
static inline void open_pixel(pixel *p, const int8_t *x, int32_t inputs) {
    const int32_t first = inputs < FEW ? 0 : inputs / NN_DSP_OCTET * NN_DSP_OCTET;
    p->x = x;
    p->octets = inputs / NN_DSP_OCTET;
    p->rest = inputs % NN_DSP_OCTET;
    if (p->rest > 0) {
        const int32_t words = (inputs - first) / 4;
        for (int32_t i = 0; i < words; i++) {
            nn_store4(p->tail + 4 * i, nn_load4(x + first + 4 * i));
            NN_BARRIER(); /* or it would become a call */
        }
        nn_store4(p->tail + 4 * words, 0);
        nn_store4(p->tail + (inputs - first) / NN_DSP_OCTET * NN_DSP_OCTET + 4, 0);
        for (int32_t i = 4 * words; i < inputs - first; i++) {
            p->tail[i] = x[first + i];
            NN_BARRIER();
        }
    }
    if (p->rest > 0 && first == 0) {
        p->x = p->tail;
        p->octets++;
        p->rest = 0;
    }
    p->start = -128 * nn_dsp_sum_inputs(p->x, p->octets);
    if (p->rest > 0) {
        p->start -= 128 * nn_dsp_sum_inputs(p->tail, 1);
    }
}

void nn_fully_connected_s8_dsp(const void *constants, const nn_view *in, const nn_view *out,
                               const nn_window *window, void *scratch) {
    pixel p;
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            open_pixel(&p, nn_pixel(in, y, x), in->channels);
            compute((const nn_dsp_constants *)constants, &p, nn_out_pixel(out, y, x),
                    out->channels);
        }
    }
}
