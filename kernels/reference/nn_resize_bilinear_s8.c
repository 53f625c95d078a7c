/* RESIZE_BILINEAR. */
#include "nn_resize.h"

void nn_resize_bilinear_s8(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window) {
    const nn_resize_geometry *g = geometry;
    const int32_t step_y = nn_resize_step(in->height, out->height, g->align_corners);
    const int32_t step_x = nn_resize_step(in->width, out->width, g->align_corners);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const nn_resize_place py = nn_resize_find(y, in->height, step_y, g->half_pixel_centers);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_resize_place px = nn_resize_find(x, in->width, step_x, g->half_pixel_centers);
            const int8_t *a = nn_pixel(in, py.lower, px.lower);
            const int8_t *b = nn_pixel(in, py.lower, px.upper);
            const int8_t *c = nn_pixel(in, py.upper, px.lower);
            const int8_t *d = nn_pixel(in, py.upper, px.upper);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < out->channels; i++) {
                const int32_t above = a[i] * (NN_RESIZE_ONE - px.weight) + b[i] * px.weight;
                const int32_t below = c[i] * (NN_RESIZE_ONE - px.weight) + d[i] * px.weight;
                const int32_t sum = above * (NN_RESIZE_ONE - py.weight) + below * py.weight;
                const int32_t half = 1 << (2 * NN_RESIZE_BITS - 1);
                result[i] =
                    (int8_t)((sum > 0 ? sum + half : sum - half) / (1 << (2 * NN_RESIZE_BITS)));
            }
        }
    }
}
