/* RESIZE_NEAREST_NEIGHBOR of float32. */
#include "nn_f32.h"
#include "nn_resize.h"

void nn_resize_nearest_f32(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t in_y = nn_resize_nearest(y, in->height, out->height, geometry);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t in_x = nn_resize_nearest(x, in->width, out->width, geometry);
            NN_MEMCPY(nn_out_pixel(out, y, x), nn_pixel(in, in_y, in_x), 4 * (size_t)in->channels);
        }
    }
}
