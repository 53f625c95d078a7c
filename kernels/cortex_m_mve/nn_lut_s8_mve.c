/* Any function of one byte, Helium: sixteen elements of the table in one gathering load. */
#include "nn_mve.h"

void nn_lut_s8_mve(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window) {
    const int dense = nn_one_column(window) || (nn_dense(in) && nn_dense(out));
    for (int32_t y = window->y0; y < window->y1; y++) {
        int32_t x = window->x0, run;
        for (; x < window->x1; x += run) {
            const int8_t *values = nn_pixel(in, y, x);
            int8_t *result = nn_out_pixel(out, y, x);
            run = nn_run(in, x, nn_run(out, x, dense ? window->x1 - x : 1));
            __asm volatile("wlstp.8 lr, %[count], 2f\n"
                           "1:\n"
                           "vldrb.u8 q0, [%[values]], #16\n"
                           "vldrb.u8 q1, [%[table], q0]\n"
                           "vstrb.8 q1, [%[result]], #16\n"
                           "letp lr, 1b\n"
                           "2:\n"
                           : [values] "+r"(values), [result] "+r"(result)
                           : [table] "r"(constants), [count] "r"(run * out->channels)
                           : "q0", "q1", "lr", "memory");
        }
    }
}
