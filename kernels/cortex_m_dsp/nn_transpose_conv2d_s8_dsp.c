/* TRANSPOSE_CONV: each phase of its outputs as a convolution; or, where the phases of a row have
 * equally many taps, all that have any from the same inputs. */
#include "nn_cortex_m_dsp.h"
#include "nn_dsp_conv_phases.h"

int32_t nn_transpose_conv2d_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry,
                                                 const nn_view *in, const nn_view *out) {
    return nn_phases_scratch(geometry, in, out, nn_conv2d_s8_dsp_scratch_bytes);
}

void nn_transpose_conv2d_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                                const nn_view *in, const nn_view *out, const nn_window *window,
                                void *scratch) {
    const nn_conv_geometry *g = geometry;
    const int even = *(const int32_t *)constants & 1, is_ring = out->ring_rows < out->height;
    const int32_t last = is_ring ? window->y1 : nn_min(window->y1, window->y0 + g->stride_h);
    for (int32_t y = window->y0; y < last && even; y++) {
        const nn_window rows = {y, is_ring ? y + 1 : window->y1, window->x0, window->x1};
        if ((y + g->pad_top) % g->stride_h < g->kernel_h) {
            nn_dsp_conv_phases(g, constants, in, out, &rows, scratch);
        }
    }
    if (!even || g->kernel_h < g->stride_h || g->kernel_w < g->stride_w) {
        nn_phases_walk_of(out->channels, even, g, constants, in, out, window, scratch,
                          nn_conv2d_s8_dsp);
    }
}
