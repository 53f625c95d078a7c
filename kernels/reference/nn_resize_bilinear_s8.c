/* RESIZE_BILINEAR in fixed point: positions and weights have 10 fractional bits. */
#include "nn_arith.h"

#define BITS 10
#define ONE (1 << BITS)

/* The two input indices between which an output index falls, and the second one's weight. */
typedef struct {
    int32_t lower, upper, weight;
} place;

/* Input steps an output step. */
static int32_t scale(int32_t in_size, int32_t out_size, int32_t align_corners) {
    if (align_corners && out_size > 1) {
        in_size--;
        out_size--;
    }
    return (ONE * in_size + out_size / 2) / out_size;
}

static place find(int32_t index, int32_t in_size, int32_t step, int32_t half_pixel_centers) {
    const int32_t at = index * step + (half_pixel_centers ? step / 2 - ONE / 2 : 0);
    place found;
    /* Divisions, not shifts: they round towards zero. */
    found.lower = nn_clamp(at / ONE, 0, in_size - 1);
    found.upper = nn_min((at + ONE - 1) / ONE, in_size - 1);
    found.weight = at - ONE * found.lower;
    return found;
}

void nn_resize_bilinear_s8(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window) {
    const nn_resize_geometry *g = geometry;
    const int32_t step_y = scale(in->height, out->height, g->align_corners);
    const int32_t step_x = scale(in->width, out->width, g->align_corners);
    for (int32_t y = window->y0; y < window->y1; y++) {
        const place py = find(y, in->height, step_y, g->half_pixel_centers);
        for (int32_t x = window->x0; x < window->x1; x++) {
            const place px = find(x, in->width, step_x, g->half_pixel_centers);
            const int8_t *a = nn_pixel(in, py.lower, px.lower);
            const int8_t *b = nn_pixel(in, py.lower, px.upper);
            const int8_t *c = nn_pixel(in, py.upper, px.lower);
            const int8_t *d = nn_pixel(in, py.upper, px.upper);
            int8_t *result = nn_out_pixel(out, y, x);
            for (int32_t i = 0; i < out->channels; i++) {
                const int32_t above = a[i] * (ONE - px.weight) + b[i] * px.weight;
                const int32_t below = c[i] * (ONE - px.weight) + d[i] * px.weight;
                const int32_t sum = above * (ONE - py.weight) + below * py.weight;
                const int32_t half = 1 << (2 * BITS - 1);
                result[i] = (int8_t)((sum > 0 ? sum + half : sum - half) / (1 << (2 * BITS)));
            }
        }
    }
}
