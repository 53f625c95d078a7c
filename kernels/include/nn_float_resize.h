/* RESIZE_BILINEAR in float32, step by step as LiteRT's reference kernel. */
#ifndef NN_FLOAT_RESIZE_H
#define NN_FLOAT_RESIZE_H

#include "nn_float.h"
#include "nn_resize.h"

/* The two input indices between which an output index falls, and the second one's weight. */
typedef struct {
    int32_t lower, upper;
    float weight;
} nn_float_place;

static inline nn_float_place nn_float_find(int32_t index, int32_t in_size, float step,
                                           int32_t half_pixel_centers) {
    const float centre = half_pixel_centers ? 0.5F : 0.0F;
    const float at = ((float)index + centre) * step - centre;
    const int32_t whole = (int32_t)at;
    nn_float_place found;
    found.lower = nn_max(whole - ((float)whole > at), 0);
    found.upper = nn_min(whole + ((float)whole < at), in_size - 1);
    found.weight = at - (float)found.lower;
    return found;
}

/* The body of a kernel for elements of a type, of which `stored` makes floats; `expression` gives
 * an output element for `mixed`, to which `offset` was added. */
#define NN_FLOAT_BILINEAR(type, stored, offset, expression)                                        \
    const nn_resize_geometry *g = geometry;                                                        \
    const float step_y = nn_resize_real_step(in->height, out->height, g->align_corners);           \
    const float step_x = nn_resize_real_step(in->width, out->width, g->align_corners);             \
    for (int32_t y = window->y0; y < window->y1; y++) {                                            \
        const nn_float_place py = nn_float_find(y, in->height, step_y, g->half_pixel_centers);     \
        for (int32_t x = window->x0; x < window->x1; x++) {                                        \
            const nn_float_place px = nn_float_find(x, in->width, step_x, g->half_pixel_centers);  \
            const type *a = (const type *)(const void *)nn_pixel(in, py.lower, px.lower);          \
            const type *b = (const type *)(const void *)nn_pixel(in, py.upper, px.lower);          \
            const type *c = (const type *)(const void *)nn_pixel(in, py.lower, px.upper);          \
            const type *d = (const type *)(const void *)nn_pixel(in, py.upper, px.upper);          \
            type *result = (type *)(void *)nn_out_pixel(out, y, x);                                \
            for (int32_t i = 0; i < out->channels; i++) {                                          \
                float mixed = stored(a[i]) * (1.0F - py.weight) * (1.0F - px.weight);              \
                mixed += stored(b[i]) * py.weight * (1.0F - px.weight);                            \
                mixed += stored(c[i]) * (1.0F - py.weight) * px.weight;                            \
                mixed += stored(d[i]) * py.weight * px.weight;                                     \
                mixed += offset;                                                                   \
                result[i] = expression;                                                            \
                NN_ONE_BY_ONE();                                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#endif
