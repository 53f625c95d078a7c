/* Phases of a transpose convolution from the same inputs: see nn_dsp_conv_phases.h. */
#include "nn_dsp_conv_phases.h"
#include "nn_dsp_conv.h"

/* Outputs whose columns leave the remainders `first` to `end` - 1, from column x on. */
static inline void compute_phases(const int8_t *constants, const int32_t *offsets, int32_t first,
                                  int32_t end, int32_t pixels, const uint32_t *scratch,
                                  const nn_dsp_shape *shape, const nn_view *out, int32_t y,
                                  int32_t x) {
    for (int32_t i = first; i < end; i++, x++) {
        const nn_dsp_constants *c =
            (const nn_dsp_constants *)(const void *)(constants + (offsets[i] & ~1));
        nn_dsp_matmul(c, pixels, scratch, shape, nn_out_pixel(out, y, x));
    }
}

/* Widens the inputs of the outputs whose columns leave the remainders `phase` and more. The last of
 * the tap columns is column `last`. Only the first phase has taps in all of them: what lies before
 * those of `phase` has weights of zero, and may not be there. */
static inline void widen(nn_dsp_layer *l, int32_t pixels, int32_t missing, int32_t last) {
    const int32_t left = last - l->geometry->kernel_w + 1, first = left + missing;
    const nn_view *in = l->in;
    nn_view held;
    if (missing > 0 && first > 0) {
        held = *in;
        held.x0 -= first;
        held.width -= first;
        l->in = &held;
        nn_dsp_widen_inputs(l, pixels, -missing);
        l->in = in;
    } else {
        nn_dsp_widen_inputs(l, pixels, left);
    }
}

/* Whole groups of stride_w outputs go together, as far as they lie one behind the other. */
void nn_dsp_conv_phases(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                        const nn_view *out, const nn_window *window, void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int32_t stride = g->stride_w, row = (window->y0 + g->pad_top) % g->stride_h;
    const int32_t *offsets = (const int32_t *)constants + row * stride;
    const nn_dsp_constants *c =
        (const nn_dsp_constants *)(const void *)((const int8_t *)constants + (offsets[0] & ~1));
    const int32_t most = nn_dsp_most_pixels((window->x1 - window->x0 + stride - 1) / stride);
    nn_conv_geometry one = *geometry;
    nn_dsp_shape shape;
    nn_dsp_layer l;
    one.kernel_h = nn_phase_taps(g->kernel_h, g->stride_h, row);
    one.kernel_w = nn_phase_taps(g->kernel_w, stride, 0);
    one.stride_w = 1;
    nn_dsp_open_layer(&l, &one, c->common.input_zero_point, in, most, scratch);
    shape = nn_dsp_shape_for(l.taps.quads, out);
    shape.stride *= stride;
    for (int32_t y = window->y0; y < window->y1; y += g->stride_h) {
        nn_dsp_find_input_rows(&l, (y + g->pad_top) / g->stride_h - one.kernel_h + 1);
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t right = x + g->pad_left, phase = right % stride;
            const int32_t groups = phase == 0 ? nn_run(out, x, window->x1 - x) / stride : 0;
            const int32_t pixels = groups > 0 ? nn_dsp_tile(groups) : 1;
            const int32_t end = nn_min(stride, phase + window->x1 - x);
            if (phase < g->kernel_w) { /* else they meet no input, and it may not be there */
                const int32_t taps = nn_phase_taps(g->kernel_w, stride, phase);
                widen(&l, pixels, one.kernel_w - taps, right / stride);
                compute_phases((const int8_t *)constants, offsets, phase, nn_min(end, g->kernel_w),
                               pixels, (uint32_t *)scratch, &shape, out, y, x);
            }
            x += (pixels - 1) * stride + end - phase;
        }
    }
}
