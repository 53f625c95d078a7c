/* QUANTIZE from float32 and DEQUANTIZE to it. */
#include "nn_float.h"

/* An element in steps of the scale, to the nearest whole number, halves away from zero. NaN counts
 * as 0. */
static inline int32_t quantised(const nn_float_scale *c, float value, int32_t low, int32_t high) {
    float steps = value / c->scale, rest;
    int32_t whole;
    if (steps != steps) {
        return c->zero_point;
    }
    steps = nn_float_clamp(steps, -131072.0F, 131072.0F); /* beyond both types */
    whole = (int32_t)steps;
    rest = steps - (float)whole;
    whole += (rest >= 0.5F) - (rest <= -0.5F);
    return nn_clamp(whole + c->zero_point, low, high);
}

#define FROM_FLOAT(kernel, type, low, high)                                                        \
    void kernel(const void *constants, const nn_view *in, const nn_view *out,                      \
                const nn_window *window) {                                                         \
        const nn_float_scale c = *(const nn_float_scale *)constants;                               \
        for (int32_t y = window->y0; y < window->y1; y++) {                                        \
            for (int32_t x = window->x0; x < window->x1; x++) {                                    \
                const float *value = nn_float_in(in, y, x);                                        \
                type *result = (type *)(void *)nn_out_pixel(out, y, x);                            \
                for (int32_t i = 0; i < out->channels; i++) {                                      \
                    result[i] = (type)quantised(&c, value[i], low, high);                          \
                    NN_ONE_BY_ONE();                                                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define TO_FLOAT(kernel, type)                                                                     \
    void kernel(const void *constants, const nn_view *in, const nn_view *out,                      \
                const nn_window *window) {                                                         \
        const nn_float_scale c = *(const nn_float_scale *)constants;                               \
        for (int32_t y = window->y0; y < window->y1; y++) {                                        \
            for (int32_t x = window->x0; x < window->x1; x++) {                                    \
                const type *value = (const type *)(const void *)nn_pixel(in, y, x);                \
                float *result = nn_float_out(out, y, x);                                           \
                for (int32_t i = 0; i < out->channels; i++) {                                      \
                    result[i] = (float)(value[i] - c.zero_point) * c.scale;                        \
                    NN_ONE_BY_ONE();                                                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

FROM_FLOAT(nn_quantize_f32_s8, int8_t, -128, 127)
FROM_FLOAT(nn_quantize_f32_s16, int16_t, -32768, 32767)
TO_FLOAT(nn_dequantize_s8_f32, int8_t)
TO_FLOAT(nn_dequantize_s16_f32, int16_t)
