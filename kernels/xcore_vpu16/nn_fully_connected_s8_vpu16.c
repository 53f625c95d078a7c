/* Dense layers: a pixel of the input is a row of them. */
#include "nn_vpu16.h"
#include "nn_xcore_vpu16.h"

void nn_fully_connected_s8_vpu16(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch) {
    nn_vpu v = {0};
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const nn_vpu16_taps taps = nn_vpu16_taps_of(&v, nn_pixel(in, y, x), in->channels);
            nn_vpu16_pixel(&v, constants, &taps, 1, nn_pixel(out, y, x), out->channels);
        }
    }
}
