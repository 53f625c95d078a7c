/* CONV_2D with a kernel of 1 x 1: three pixels at a time, over row ends where memory has none. */
#include "nn_dsp_matmul.h"

int32_t nn_conv2d_1x1_s8_dsp_scratch_bytes(const nn_conv_geometry *geometry, const nn_view *in,
                                           const nn_view *out) {
    (void)geometry;
    return nn_dsp_widened_bytes(nn_dsp_most_pixels(out->height * out->width),
                                (in->channels + 3) / 4);
}

/* What every run of pixels needs. */
typedef struct {
    const nn_dsp_constants *constants;
    uint32_t *scratch, *widened;
    const nn_dsp_shape *shape;
    int32_t step, out_step; /* bytes from pixel to pixel */
    int32_t inputs;
} layer;

/* `count` pixels from addresses `step` bytes apart. */
static void compute_run(const layer *l, const int8_t *from, int8_t *out, int32_t count) {
    while (count > 0) {
        const int32_t pixels = nn_dsp_tile(count);
        nn_dsp_widen(l->widened, pixels, from, l->step, l->inputs);
        nn_dsp_matmul(l->constants, pixels, l->scratch, l->shape, out);
        from += pixels * l->step;
        out += pixels * l->out_step;
        count -= pixels;
    }
}

/* Rows y from the window's on that make one run of pixels in a view. */
static int32_t joined_rows(const nn_view *view, const nn_window *window, int32_t y) {
    const int whole = window->x0 == 0 && window->x1 == view->width && view->x0 == 0 &&
                      view->ring_cols == view->width &&
                      view->row_stride == view->width * view->pixel_stride;
    return whole ? view->ring_rows - y % view->ring_rows : 1;
}

void nn_conv2d_1x1_s8_dsp(const nn_conv_geometry *geometry, const void *constants,
                          const nn_view *in, const nn_view *out, const nn_window *window,
                          void *scratch) {
    const int32_t stride_w = geometry->stride_w, stride_h = geometry->stride_h;
    const int plain = stride_w == 1 && stride_h == 1;
    const nn_dsp_shape shape = nn_dsp_shape_for((in->channels + 3) / 4, out);
    layer l;
    l.constants = (const nn_dsp_constants *)constants;
    l.scratch = (uint32_t *)scratch;
    l.widened = nn_dsp_widened(scratch);
    l.step = stride_w * in->pixel_stride;
    l.inputs = in->channels;
    l.shape = &shape;
    l.out_step = out->pixel_stride;
    for (int32_t y = window->y0; y < window->y1;) {
        int32_t rows = 1;
        if (plain) {
            rows = nn_min(joined_rows(in, window, y), joined_rows(out, window, y));
            rows = nn_min(rows, window->y1 - y);
        }
        for (int32_t x = window->x0; x < window->x1;) {
            const int32_t column = x * stride_w;
            int32_t run = nn_run(out, x, window->x1 - x);
            run = nn_min(run, (in->ring_cols - nn_column(in, column) + stride_w - 1) / stride_w);
            compute_run(&l, nn_pixel(in, y * stride_h, column), nn_out_pixel(out, y, x),
                        run * rows);
            x += run;
        }
        y += rows;
    }
}
