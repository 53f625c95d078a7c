/* RESIZE_NEAREST_NEIGHBOR of int16; the source index in float32, as the reference. */
#include "nn_wide.h"

/* The input index for an output index. */
static int32_t source(int32_t index, int32_t in_size, int32_t out_size,
                      const nn_resize_geometry *g) {
    const int corners = g->align_corners && out_size > 1;
    const float scale =
        corners ? (float)(in_size - 1) / (float)(out_size - 1) : (float)in_size / (float)out_size;
    const float place = ((float)index + (g->half_pixel_centers ? 0.5f : 0.0f)) * scale;
    int32_t found = (int32_t)place;
    if (g->align_corners && place - (float)found >= 0.5f) {
        found++;
    }
    return nn_min(found, in_size - 1);
}

void nn_resize_nearest_s16(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window) {
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t in_y = source(y, in->height, out->height, geometry);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t in_x = source(x, in->width, out->width, geometry);
            __builtin_memcpy(nn_out_pixel(out, y, x), nn_pixel(in, in_y, in_x),
                             2 * (size_t)in->channels);
        }
    }
}
