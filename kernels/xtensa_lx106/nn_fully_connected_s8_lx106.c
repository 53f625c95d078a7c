/* FULLY_CONNECTED: four outputs at a time; weights in words of four outputs, input by input. */
#include "nn_lx106.h"
#include "nn_xtensa.h"

#define OUTPUTS 4

/* The sums of four outputs, and of the inputs themselves. */
NN_OUTLINE void sum4(int32_t sums[OUTPUTS], const int8_t *x, const uint32_t *weights,
                     const int8_t *end) {
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (; x != end; x++) {
        const uint32_t value = (uint32_t)nn_lx106_natural(x), four = *weights++;
        s0 += value * (four & 255);
        s1 += value * (four >> 8 & 255);
        s2 += value * (four >> 16 & 255);
        s3 += value * (four >> 24);
    }
    sums[0] = (int32_t)s0;
    sums[1] = (int32_t)s1;
    sums[2] = (int32_t)s2;
    sums[3] = (int32_t)s3;
}

NN_OUTLINE int32_t total(const int8_t *x, const int8_t *end) {
    int32_t sum = 0;
    while (x != end) {
        sum += nn_lx106_natural(x++);
    }
    return sum;
}

void nn_fully_connected_s8_lx106(const void *constants, const nn_view *in, const nn_view *out,
                                 const nn_window *window, void *scratch) {
    const nn_conv_constants common = *(const nn_conv_constants *)constants;
    const nn_dense_channel *channels =
        (const nn_dense_channel *)(const void *)((const nn_conv_constants *)constants + 1);
    const int32_t inputs = in->channels, outputs = out->channels;
    const uint32_t *first = (const uint32_t *)(const void *)nn_weights(constants, outputs,
                                                                       sizeof(nn_dense_channel));
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int8_t *values = nn_pixel(in, y, x), *end = values + inputs;
            const uint32_t *weights = first;
            int8_t *result = nn_pixel(out, y, x);
            const int32_t correction = -128 * total(values, end);
            for (int32_t c = 0; c < outputs; c += OUTPUTS, weights += inputs) {
                int32_t sums[OUTPUTS];
                sum4(sums, values, weights, end);
                for (int32_t i = 0; i < nn_min(OUTPUTS, outputs - c); i++) {
                    result[c + i] = nn_dense_output(nn_wrapping_add(sums[i], correction),
                                                    channels + c + i, &common);
                }
            }
        }
    }
}
