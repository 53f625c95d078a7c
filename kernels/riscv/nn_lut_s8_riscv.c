/* Any function of one byte, by a table of its 256 results: four elements at a time. */
#include "nn_arith.h"
#include "nn_riscv.h"

static inline void look_up(const uint8_t *table, const int8_t *from, int8_t *to, int32_t count) {
    const int8_t *end = from + (count & ~3);
    for (; from != end; from += 4, to += 4) {
        const uint8_t a = table[(uint8_t)from[0]], b = table[(uint8_t)from[1]];
        const uint8_t c = table[(uint8_t)from[2]], d = table[(uint8_t)from[3]];
        to[0] = (int8_t)a;
        to[1] = (int8_t)b;
        to[2] = (int8_t)c;
        to[3] = (int8_t)d;
    }
    for (end += count & 3; from != end;) {
        *to++ = (int8_t)table[(uint8_t)*from++];
    }
}

void nn_lut_s8_riscv(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window) {
    const int dense = nn_one_column(window) || (nn_dense(in) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0, run; x < window->x1; x += run) {
            run = nn_run(in, x, nn_run(out, x, dense ? window->x1 - x : 1));
            look_up((const uint8_t *)constants, nn_pixel(in, y, x), nn_out_pixel(out, y, x),
                    run * out->channels);
        }
    }
}
