/* Poolings in plain C: one number of all the elements that a window meets, four channels at a time.
 */
#ifndef NN_FOLD_H
#define NN_FOLD_H

#include "nn_area.h"

/* What has been found so far and one more element. */
typedef int32_t nn_fold_step(int32_t found, int32_t value);

/* An output element of what was found among `elements` elements, before it is clamped. */
typedef int32_t nn_fold_end(int32_t found, int32_t elements);

static inline int32_t nn_fold_sum(int32_t found, int32_t value) {
    return found + value;
}

/* Folds `count` channels, at most 4, from channel c on. */
static inline __attribute__((always_inline)) void nn_fold_channels(int32_t found[4],
                                                                   const nn_area *window, int32_t c,
                                                                   int32_t count, int32_t start,
                                                                   nn_fold_step *step) {
    const nn_view *in = window->in;
    const int32_t apart = in->pixel_stride;
    for (int32_t i = 0; i < count; i++) {
        found[i] = start;
    }
    for (int32_t row = 0; row < window->rows; row++) {
        const int8_t *line = nn_row(in, window->y + row) + c;
        int32_t x = window->x, left = window->columns;
        while (left > 0) {
            const int8_t *value = line + nn_column(in, x) * apart;
            int32_t run = nn_run(in, x, left);
            left -= run;
            x += run;
            for (; run > 0; run--, value += apart) {
                for (int32_t i = 0; i < count; i++) {
                    found[i] = step(found[i], value[i]);
                }
            }
        }
    }
}

/* All channels of one output pixel. `elements`: those of the window that count. */
static inline __attribute__((always_inline)) void
nn_fold_pixel(const nn_area *window, const nn_pool_constants *constants, int8_t *out, int32_t start,
              nn_fold_step *step, nn_fold_end *end, int32_t elements) {
    const int32_t channels = window->in->channels;
    const int32_t low = constants->clamp_min, high = constants->clamp_max;
    int32_t found[4], c = 0;
    for (; c + 4 <= channels; c += 4) {
        nn_fold_channels(found, window, c, 4, start, step);
        for (int32_t i = 0; i < 4; i++) {
            out[c + i] = (int8_t)nn_clamp(end(found[i], elements), low, high);
        }
    }
    for (; c < channels; c++) {
        nn_fold_channels(found, window, c, 1, start, step);
        out[c] = (int8_t)nn_clamp(end(found[0], elements), low, high);
    }
}

#endif
