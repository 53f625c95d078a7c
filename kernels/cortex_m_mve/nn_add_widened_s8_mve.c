/* ADD of a second operand that lacks channels, Helium: a filling is added in their place.
 * Constants: those of nn_add_s8_mve.
 *
 * Row by row, sixteen channels of all pixels at a time: what the second operand lacks of them is
 * the same for each pixel. Sums that are no line (nn_add_s8_mve.c) are made part by part. */
#include "nn_mve_add.h"
#include "nn_view.h"

/* Lanes from `first` on, up to the one before `end`; of vectors that lie in any place. */
static inline mve_pred16_t lanes(int32_t first, int32_t end) {
    return (mve_pred16_t)(vctp8q((uint32_t)nn_max(end, 0)) & ~vctp8q((uint32_t)nn_max(first, 0)));
}

/* Sixteen channels from c on of the strip's pixels; `narrow` channels from `before` on are the
 * second operand's. */
static inline void add_sixteen(const nn_mve_line *l, const nn_mve_strip *strip, int32_t c,
                               int32_t before, int32_t narrow, int8x16_t filling) {
    const int32x4_t factor1 = vdupq_n_s32(l->factor1);
    const mve_pred16_t some = vctp8q((uint32_t)(strip->count - c));
    const mve_pred16_t own = lanes(before - c, before + narrow - c);
    const int8x16_t others = vpselq_s8(vdupq_n_s8(0), filling, own);
    nn_mve_strip s = *strip;
    s.a += c;
    s.b += c - before;
    s.out += c;
    if (own == 0xFFFF) { /* all of both operands */
        for (; s.pixels > 0; nn_mve_next_pixel(&s)) {
            const int8x16_t first = vldrbq_s8(s.a), second = vldrbq_s8(s.b);
            vstrbq_s8(s.out, nn_mve_line_sixteen(first, second, factor1, l, 0, 1));
        }
        return;
    }
    for (; s.pixels > 0; nn_mve_next_pixel(&s)) {
        const int8x16_t first = vldrbq_z_s8(s.a, some);
        const int8x16_t second = vorrq_s8(vldrbq_z_s8(s.b, own), others);
        vstrbq_p_s8(s.out, nn_mve_line_sixteen(first, second, factor1, l, 0, 1), some);
    }
}

static NN_NOINLINE void add_by_line(const nn_add_mve_constants *k, const nn_view *in1,
                                    const nn_view *in2, int8_t filling, const nn_view *out,
                                    const nn_window *window, int32_t before) {
    const nn_mve_line l = {k->factor1, k->factor2, k->offset, k->general.clamp_min,
                           k->general.clamp_max};
    const int8x16_t fill = vdupq_n_s8(filling);
    nn_mve_strip s;
    s.a_step = in1->pixel_stride;
    s.b_step = in2->pixel_stride;
    s.out_step = out->pixel_stride;
    s.count = out->channels;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x += s.pixels) {
            s.a = nn_pixel(in1, y, x);
            s.b = nn_pixel(in2, y, x);
            s.out = nn_out_pixel(out, y, x);
            s.pixels = nn_run(in1, x, nn_run(in2, x, nn_run(out, x, window->x1 - x)));
            for (int32_t c = 0; c < s.count; c += 16) {
                add_sixteen(&l, &s, c, before, in2->channels, fill);
            }
        }
    }
}

/* Part by part: the channels that the second operand lacks, and its own. Not inline, so that the
 * longest path keeps no vectors on the stack. */
static NN_NOINLINE void add_by_parts(const void *constants, const nn_view *in1, const nn_view *in2,
                                     const nn_view *filling, const nn_view *out,
                                     const nn_window *window, int32_t before) {
    const int32_t end = before + in2->channels;
    nn_window row = *window;
    for (; row.y0 < window->y1; row.y0++) {
        row.y1 = row.y0 + 1;
        for (int32_t c = 0, next; c < out->channels; c = next) {
            const int own = c == before;
            next = own ? end : c < before ? before : out->channels;
            const nn_view from = nn_part(in1, c, next - c), to = nn_part(out, c, next - c);
            const nn_view more = nn_part(own ? in2 : filling, 0, next - c);
            nn_add_s8_mve(constants, &from, &more, &to, &row);
        }
    }
}

void nn_add_widened_s8_mve(const void *constants, const nn_view *in1, const nn_view *in2,
                           const nn_view *filling, const nn_view *out, const nn_window *window,
                           int32_t before) {
    const nn_add_mve_constants *const k = (const nn_add_mve_constants *)constants;
    if (k->linear) {
        add_by_line(k, in1, in2, *filling->data, out, window, before);
    } else {
        add_by_parts(constants, in1, in2, filling, out, window, before);
    }
}
