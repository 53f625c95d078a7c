/* What the adapters to CMSIS-NN share. */
#ifndef NN_CMSIS_NN_H
#define NN_CMSIS_NN_H

#include "nn_cmsis_nn_ask.h"
#include "nn_cortex_m_cmsis_nn.h"
#include "nn_fault.h"

#ifdef CMSIS_NN_USE_SINGLE_ROUNDING
#error "TFLite's reference kernels round twice: CMSIS_NN_USE_SINGLE_ROUNDING gives other results"
#endif

static inline void nn_cmsis_nn_succeeded(arm_cmsis_nn_status status) {
    if (status != ARM_CMSIS_NN_SUCCESS) {
        const nn_fault fault = {"status of CMSIS-NN", ARM_CMSIS_NN_SUCCESS, status};
        nn_stop(&fault);
    }
}

/* A tensor whose pixels lie one after the other, all of them there. */
static inline int nn_cmsis_nn_whole(const nn_view *view) {
    return view->x0 == 0 && view->ring_cols == view->width && view->ring_rows == view->height &&
           view->pixel_stride == view->channels && view->row_stride == view->width * view->channels;
}

/* A call for all of an output, of tensors that are whole. */
static inline void nn_cmsis_nn_require_whole(const nn_view *in, const nn_view *out,
                                             const nn_window *window) {
    const int whole = nn_cmsis_nn_whole(in) && nn_cmsis_nn_whole(out) && window->x0 == 0 &&
                      window->x1 == out->width && window->y0 == 0 && window->y1 == out->height;
    if (!whole) {
        const nn_fault fault = {"rows of a whole tensor for CMSIS-NN", out->height,
                                window->y1 - window->y0};
        nn_stop(&fault);
    }
}

/* An operand of an output's shape, in as many bytes. */
static inline int nn_cmsis_nn_same(const nn_view *in, const nn_view *out) {
    return nn_cmsis_nn_whole(in) && in->height == out->height && in->width == out->width &&
           in->channels == out->channels;
}

static inline nn_cmsis_nn_shape nn_cmsis_nn_shape_of(const nn_view *view) {
    const nn_cmsis_nn_shape shape = {view->height, view->width, view->channels};
    return shape;
}

/* The caller's scratch, which has to be as much as the library wants: it is another one than the
 * plan was made for if it is not. */
static inline cmsis_nn_context nn_cmsis_nn_scratch(void *scratch, int32_t bytes, int32_t wanted) {
    const cmsis_nn_context context = {.buf = scratch, .size = bytes};
    if (wanted > bytes) {
        const nn_fault fault = {"bytes of scratch of CMSIS-NN", wanted, bytes};
        nn_stop(&fault);
    }
    return context;
}

/* The parts of a convolution's constants. */
typedef struct {
    const nn_conv_constants *common;
    const int32_t *bias;
    cmsis_nn_per_channel_quant_params factors;
    const int8_t *weights;
} nn_cmsis_nn_filter;

static inline nn_cmsis_nn_filter nn_cmsis_nn_open(const void *constants, int32_t outputs) {
    nn_cmsis_nn_filter f;
    f.common = (const nn_conv_constants *)constants;
    f.bias = (const int32_t *)(const void *)(f.common + 1);
    /* The library reads them only, but its struct does not say so. */
    f.factors.multiplier = (int32_t *)(uintptr_t)(f.bias + outputs);
    f.factors.shift = (int32_t *)(uintptr_t)(f.bias + 2 * outputs);
    f.weights = (const int8_t *)(f.bias + ((3 * outputs + 3) & ~3));
    return f;
}

/* What a pooling's functions are told. */
typedef struct {
    cmsis_nn_pool_params params;
    cmsis_nn_dims input, filter, output;
} nn_cmsis_nn_pooling;

static inline nn_cmsis_nn_pooling nn_cmsis_nn_open_pool(const nn_pool_geometry *geometry,
                                                        const void *constants, const nn_view *in,
                                                        const nn_view *out) {
    const nn_pool_constants *c = (const nn_pool_constants *)constants;
    const nn_cmsis_nn_pooling p = {
        .params = {.stride = nn_cmsis_nn_tile(geometry->stride_h, geometry->stride_w),
                   .padding = nn_cmsis_nn_tile(geometry->pad_top, geometry->pad_left),
                   .activation = {.min = c->clamp_min, .max = c->clamp_max}},
        .input = nn_cmsis_nn_dims(1, in->height, in->width, in->channels),
        .filter = nn_cmsis_nn_dims(1, geometry->kernel_h, geometry->kernel_w, 1),
        .output = nn_cmsis_nn_dims(1, out->height, out->width, out->channels),
    };
    return p;
}

#endif
