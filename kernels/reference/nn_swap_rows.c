/* Rows of a tensor of which each pixel is in one of two views: in its window or outside of it. */
#include "nn_arith.h"

/* The bytes at `held` go to `in`, those at `out` take their place; `in` may be `out`. */
static void swap(int8_t *held, const int8_t *out, int8_t *in, int32_t bytes) {
    int32_t i = 0;
    for (; i + 4 <= bytes; i += 4) {
        uint32_t coming, going;
        NN_MEMCPY(&coming, held + i, 4);
        NN_MEMCPY(&going, out + i, 4);
        NN_MEMCPY(held + i, &going, 4);
        NN_MEMCPY(in + i, &coming, 4);
    }
    for (; i < bytes; i++) {
        const int8_t coming = held[i];
        held[i] = out[i];
        in[i] = coming;
    }
}

/* A pixel of the window, which is read and written. */
static int8_t *pixel(const nn_view *out, int32_t y, int32_t x) {
    return nn_out_pixel(out, y, x);
}

void nn_swap_rows(const nn_view *in, const nn_view *out, const nn_window *window, int32_t turn) {
    const int32_t columns = in->ring_cols, kept = out->ring_rows, bytes = in->pixel_stride;
    for (int32_t x = window->x0; x < window->x1; x++) {
        const int32_t place = x % columns, slots = (out->ring_cols + columns - 1 - place) / columns;
        const int32_t end = x < columns ? window->y0 : window->y1;
        if (slots == 0) { /* this column never leaves the window */
            continue;
        }
        const int32_t slot = place + (x / columns + turn) % slots * columns;
        for (int32_t y = window->y0 - kept; y < window->y0; y++) {
            /* what leaves is the last row that is kept in the place of row y */
            const int32_t last = y + (end - 1 - y) / kept * kept;
            if (last < 0) {
                continue;
            }
            int8_t *held = nn_out_pixel(out, last, slot);
            if (y < 0) {
                NN_MEMCPY(held, nn_pixel(in, last, x), (size_t)bytes);
            } else {
                swap(held, nn_pixel(in, last, x), pixel(in, y, x), bytes);
            }
        }
    }
}
