/* The kernels' interface: how a kernel sees a tensor, what it is told, and the constants it reads.
 *
 * A kernel computes rows [y0, y1) and columns [x0, x1) of one operator's output from views of its
 * inputs. It allocates nothing, keeps no state, and gets its scratch from the caller. Geometry
 * (what the topology fixes) comes in a struct from the emitted C; everything that training changes
 * comes in `constants`, a 16-byte aligned block of the weight image that starts with the struct
 * named beside each kernel. All integers are little-endian 32 bits, floats IEEE single precision.
 *
 * An output may lie over an input that dies, as far as the catalogue's `overlap` says:
 *   row    rows are computed in ascending order, and once row y's computation begins no input row
 *          below y * stride - pad is read again;
 *   pixel  elements are computed in ascending order, each written after it was last read.
 * So no pointer here is `restrict`.
 */
#ifndef NN_H
#define NN_H

#include "nn_compiler.h"

#include <stddef.h>
#include <stdint.h>

/* A tensor (one image of a batch), or the part of it that is in memory: pixel (y, x) is the
 * `channels` elements from data + (y % ring_rows) * row_stride + ((x - x0) % ring_cols) *
 * pixel_stride on. A pixel stride larger than the channels makes the view a part of the channels of
 * a wider tensor: data is then the part's first channel of pixel (0, x0), pixel_stride is the wider
 * tensor's channels, and row_stride counts the wider tensor's rows. What lies between the pixels is
 * never written, and what it holds never matters. Elements are bytes but for kernels whose name
 * says otherwise (`s16`: int16_t, two bytes); strides are bytes always. A view is read through;
 * only nn_out_data gives an address to write to, and kernels ask it for their output alone. */
typedef struct {
    const int8_t *data;
    int32_t row_stride;   /* bytes from row to row */
    int32_t pixel_stride; /* bytes from pixel to pixel of a row; those of its channels at least */
    int32_t ring_rows;    /* a whole tensor is a ring of all its rows; 1 repeats one row */
    int32_t ring_cols;    /* width of the column window; the tensor's width without one */
    int32_t x0;           /* first column held (of a strip); 0 for whole rows */
    int32_t height, width, channels; /* of the tensor itself: padding begins at its true edge */
} nn_view;

/* Where the data of an output lies. */
static inline int8_t *nn_out_data(const nn_view *out) {
    return (int8_t *)(uintptr_t)out->data;
}

/* The part of an operator's output to compute; half open. */
typedef struct {
    int32_t y0, y1, x0, x1;
} nn_window;

/* ---- convolutions -------------------------------------------------------------------------- */

/* constants: nn_conv_constants, then nn_channel[output channels], then (16-byte aligned) the
 * weights, int8: conv O H W I, fully connected O I, depthwise in blocks of four
 * channels (the last may have fewer), each block H W O. The bias has
 * -input_zero_point * (sum of the channel's weights) added in, so that
 * sum(w * (x - zp)) + b = sum(w * x) + bias with x = input_zero_point where x is padding.
 * A transpose conv has a block of a conv for each phase: see nn_phases.h. */
typedef struct {
    int32_t input_zero_point, output_zero_point, clamp_min, clamp_max;
} nn_conv_constants;

typedef struct {
    int32_t bias, multiplier, shift; /* real multiplier = multiplier * 2^(shift - 31) */
} nn_channel;

typedef struct {
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int32_t pad_top, pad_left;
    int32_t groups; /* conv: groups of input channels; depthwise: depth multiplier */
} nn_conv_geometry;

void nn_conv2d_s8(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                  const nn_view *out, const nn_window *window, void *scratch);
void nn_depthwise_conv2d_s8(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch);
void nn_transpose_conv2d_s8(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch);
/* constants: nn_conv_constants, then nn_dense_channel[output channels], then (16-byte aligned) the
 * weights; the zero point is folded into the bias. The reference requantises a dense layer in
 * double precision, unlike a convolution: these integers give the same bytes. */
typedef struct {
    int32_t bias, multiplier, shift;
    int32_t low; /* real multiplier = (multiplier + low * 2^-16) * 2^(shift - 31) */
} nn_dense_channel;

/* One dense layer a pixel: in->channels inputs, out->channels outputs (the emitter flattens). */
void nn_fully_connected_s8(const void *constants, const nn_view *in, const nn_view *out,
                           const nn_window *window, void *scratch);

/* ---- elementwise --------------------------------------------------------------------------- */

/* Broadcasting: an operand with one row has ring_rows 1 and row_stride 0, with one column
 * ring_cols 1; with one channel `channels` is 1 while the output has more. */
typedef struct {
    int32_t input1_zero_point, input1_multiplier, input1_shift;
    int32_t input2_zero_point, input2_multiplier, input2_shift; /* SUB: multiplier negated */
    int32_t left_shift;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
} nn_add_constants;

typedef struct {
    int32_t input1_zero_point, input2_zero_point;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
} nn_mul_constants;

typedef struct {
    int32_t input_zero_point, alpha_zero_point, output_zero_point;
    int32_t positive_multiplier, positive_shift, negative_multiplier, negative_shift;
} nn_prelu_constants;

void nn_add_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window);
void nn_mul_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window);
void nn_prelu_s8(const void *constants, const nn_view *in, const nn_view *alpha, const nn_view *out,
                 const nn_window *window);
/* out = table[(uint8_t)in]; constants: uint8_t[256]. Serves every function of one byte. */
void nn_lut_s8(const void *constants, const nn_view *in, const nn_view *out,
               const nn_window *window);

/* MAXIMUM, MINIMUM; of truth values (bytes 0 and 1) LOGICAL_OR, LOGICAL_AND. No constants. */
void nn_maximum_s8(const nn_view *in1, const nn_view *in2, const nn_view *out,
                   const nn_window *window);
void nn_minimum_s8(const nn_view *in1, const nn_view *in2, const nn_view *out,
                   const nn_window *window);
/* SELECT_V2: in1 holds truth values. */
void nn_select_s8(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                  const nn_window *window);

typedef struct {
    int32_t input1_zero_point, input1_multiplier, input1_shift;
    int32_t input2_zero_point, input2_multiplier, input2_shift;
    int32_t left_shift;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
} nn_squared_difference_constants;

typedef struct {
    int32_t input1_zero_point, input2_zero_point;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
    int32_t wraps; /* whether distances of shifts are taken modulo 32, as on 64-bit machines */
} nn_div_constants;

/* `truth`: the result where the first operand is less (bit 0), equal (bit 1), greater (bit 2). */
typedef struct {
    int32_t input1_zero_point, input1_multiplier, input1_shift;
    int32_t input2_zero_point, input2_multiplier, input2_shift;
    int32_t left_shift;
    int32_t truth;
} nn_compare_constants;

/* What an operator of int32 numbers without scales computes. */
enum {
    NN_UNSCALED_ADD,
    NN_UNSCALED_SUB,
    NN_UNSCALED_MUL,
    NN_UNSCALED_DIV,
    NN_UNSCALED_MAXIMUM,
    NN_UNSCALED_MINIMUM
};

typedef struct {
    int32_t operation;
} nn_unscaled_constants;

void nn_unscaled_s32(const void *constants, const nn_view *in1, const nn_view *in2,
                     const nn_view *out, const nn_window *window);

void nn_squared_difference_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                              const nn_view *out, const nn_window *window);
void nn_div_s8(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
               const nn_window *window);
void nn_compare_s8(const void *constants, const nn_view *in1, const nn_view *in2,
                   const nn_view *out, const nn_window *window);

/* ---- pooling and reductions ---------------------------------------------------------------- */

typedef struct {
    int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
} nn_pool_geometry;

typedef struct {
    int32_t clamp_min, clamp_max;
} nn_pool_constants;

/* An average whose padding counts: each element of it is `value`. `elements`: those of a window. */
typedef struct {
    nn_pool_constants limits;
    int32_t value, elements;
} nn_filled_pool_constants;

void nn_avg_pool_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s8(const nn_pool_geometry *geometry, const void *constants,
                           const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s8(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                    const nn_view *out, const nn_window *window);

/* `exponentials[d]` = exp(-d * input scale * beta) as a fraction of 2^31, d = largest element -
 * element. Output scale 1/256 and zero point -128 are part of the operator. */
typedef struct {
    int32_t exponentials[256];
} nn_softmax_constants;

/* Softmax over the channels of each pixel; integers only, as the reference. */
void nn_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                   const nn_window *window);

/* Each element over the root of the sum of its pixel's squares. */
typedef struct {
    int32_t input_zero_point;
} nn_l2_normalization_constants;

void nn_l2_normalization_s8(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window);

/* Differences times multiplier * 2^(shift - 31) are Q5.26 numbers, these times back_multiplier *
 * 2^(back_shift - 31) differences; what is more than `radius` below the largest does not count. */
typedef struct {
    int32_t multiplier, shift, back_multiplier, back_shift, radius;
    int32_t exponentials[256]; /* as nn_softmax_constants has them */
} nn_log_softmax_constants;

void nn_log_softmax_s8(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);

/* ---- shape changes: geometry decides all ---------------------------------------------------- */

#define NN_MAX_RANK 6

/* Mean over any axes of whole tensors. `outer` dimensions are kept: output element (i0, i1, ...)
 * in row-major order starts at sum(i * outer_stride); `inner` dimensions are reduced. */
typedef struct {
    int32_t outer_rank, inner_rank;
    int32_t outer[NN_MAX_RANK], outer_stride[NN_MAX_RANK];
    int32_t inner[NN_MAX_RANK], inner_stride[NN_MAX_RANK];
} nn_reduce_geometry;

/* The sum's zero point is the input's times the number of elements reduced. That number's
 * reciprocal is in the multiplier, but not for SUM. */
typedef struct {
    int32_t sum_zero_point, output_zero_point, output_multiplier, output_shift;
} nn_mean_constants;

void nn_mean_s8(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                int8_t *out);

/* A global pooling that is fed its input part by part, in order. nn_accumulate_s8 adds the pixels
 * of a window to `sums` (one a channel), and sets them to zero first if the window begins at pixel
 * (0, 0); the other two make the output of a MEAN over rows and columns, or of an AVERAGE_POOL_2D
 * over the whole input of `count` pixels. */
void nn_accumulate_s8(const nn_view *in, const nn_window *window, int32_t *sums);
void nn_mean_sums_s8(const void *constants, const int32_t *sums, int32_t channels, int8_t *out);
void nn_avg_pool_sums_s8(const void *constants, const int32_t *sums, int32_t count,
                         int32_t channels, int8_t *out);

/* out[sum(i * out_stride)] = in[sum(i * in_stride)] over a box of `size`: TRANSPOSE, SLICE,
 * STRIDED_SLICE, SPLIT and CONCATENATION (a call an operand; offsets are the caller's). */
typedef struct {
    int32_t rank;
    int32_t size[NN_MAX_RANK], in_stride[NN_MAX_RANK], out_stride[NN_MAX_RANK];
} nn_copy_geometry;

void nn_copy_s8(const nn_copy_geometry *geometry, const int8_t *in, int8_t *out);

/* One part of a concatenation of channels: `out` gets in's channels from `channel` on. */
void nn_concat_s8(const nn_view *in, const nn_view *out, const nn_window *window, int32_t channel);
/* Pixels of a tensor that is in memory twice, from one view to the other; bytes. */
void nn_keep_rows(const nn_view *in, const nn_view *out, const nn_window *window);
/* Kept rows of a tensor of which each pixel is in one of two views: in `in`, a ring of columns, or
 * in `out`, for all other columns that are made. For each of the window's columns the column that
 * is in its place goes to `out`, with as many rows as `out` has, the last ones made; the rows above
 * the window's first one come in. Both views are written. `turn` counts the rows of the image;
 * columns come in ascending order, from 0 on. */
void nn_swap_rows(const nn_view *in, const nn_view *out, const nn_window *window, int32_t turn);

/* Constant padding is a fill (constants: nn_pad_constants) and an nn_copy_s8. */
typedef struct {
    int32_t value;
} nn_pad_constants;

void nn_fill_s8(const void *constants, int8_t *out, int32_t bytes);

/* Expands `bytes` bytes of constants, a multiple of 16, and returns the end of what it read.
 * `stored` has
 * - a word with the bits to flip in 0x78787878 plus four halves, and 4 unused bytes;
 * - a bit for each 32 bytes, the lowest first, in a multiple of 8 bytes;
 * - these 32 bytes as they are where their bit is set, else 16 bytes, of which byte i has output
 * byte i in its low half and output byte i + 16 in its high half;
 * - the last 16 bytes as they are, if there is an odd number of 16 bytes.
 * Both addresses are multiples of 4. */
const void *nn_expand_s4(const void *stored, int8_t *out, int32_t bytes);

/* MIRROR_PAD: in_size[d] elements become before[d] + in_size[d] + after[d]. */
typedef struct {
    int32_t rank;
    int32_t in_size[NN_MAX_RANK], before[NN_MAX_RANK], after[NN_MAX_RANK];
    int32_t symmetric; /* 1: the edge element is repeated; 0: it is not */
} nn_mirror_geometry;

void nn_mirror_pad_s8(const nn_mirror_geometry *geometry, const int8_t *in, int8_t *out);

typedef struct {
    int32_t align_corners, half_pixel_centers;
} nn_resize_geometry;

void nn_resize_nearest_s8(const nn_resize_geometry *geometry, const nn_view *in, const nn_view *out,
                          const nn_window *window);
void nn_resize_bilinear_s8(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window);

/* ---- int16 activations: zero point 0, strides of views in bytes ----------------------------- */

/* constants of layers with weights: nn_wide_constants, then one struct an output channel, then
 * (16-byte aligned) the weights, int8: conv O H W I, depthwise H W O, fully connected O I.
 * `sum_bits`: 32 where no sum of products can leave an int32 (of convolutions, neither with its
 * bias, and no shift is below 17), else 64. */
typedef struct {
    int32_t clamp_min, clamp_max, sum_bits, reserved;
} nn_wide_constants;

typedef struct {
    int32_t bias_low, bias_high;     /* an int64 */
    int32_t multiplier, right_shift; /* output = (sum + bias) * multiplier / 2^right_shift */
} nn_wide_channel;

typedef struct {
    int32_t bias_low, bias_high;
    int32_t factor_low, factor_high; /* 53 bits: a double's */
    int32_t right_shift, reserved;
} nn_wide_dense_channel;

void nn_conv2d_s16(const nn_conv_geometry *geometry, const void *constants, const nn_view *in,
                   const nn_view *out, const nn_window *window, void *scratch);
void nn_depthwise_conv2d_s16(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
void nn_transpose_conv2d_s16(const nn_conv_geometry *geometry, const void *constants,
                             const nn_view *in, const nn_view *out, const nn_window *window,
                             void *scratch);
void nn_fully_connected_s16(const void *constants, const nn_view *in, const nn_view *out,
                            const nn_window *window, void *scratch);

/* constants: nn_add_constants, nn_mul_constants, nn_pool_constants, nn_mean_constants. */
void nn_add_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_mul_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_avg_pool_s16(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                     const nn_view *out, const nn_window *window);
void nn_avg_pool_filled_s16(const nn_pool_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window);
void nn_max_pool_s16(const nn_pool_geometry *geometry, const void *constants, const nn_view *in,
                     const nn_view *out, const nn_window *window);
void nn_mean_s16(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                 int8_t *out);
void nn_accumulate_s16(const nn_view *in, const nn_window *window, int32_t *sums);
void nn_mean_sums_s16(const void *constants, const int32_t *sums, int32_t channels, int8_t *out);
void nn_avg_pool_sums_s16(const void *constants, const int32_t *sums, int32_t count,
                          int32_t channels, int8_t *out);

/* As their namesakes of bytes, with the same constants. The alphas of PRELU are bytes. */
void nn_prelu_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                  const nn_window *window);
void nn_maximum_s16(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window);
void nn_minimum_s16(const nn_view *in1, const nn_view *in2, const nn_view *out,
                    const nn_window *window);
void nn_select_s16(const nn_view *in1, const nn_view *in2, const nn_view *in3, const nn_view *out,
                   const nn_window *window);
void nn_squared_difference_s16(const void *constants, const nn_view *in1, const nn_view *in2,
                               const nn_view *out, const nn_window *window);
void nn_div_s16(const void *constants, const nn_view *in1, const nn_view *in2, const nn_view *out,
                const nn_window *window);
void nn_compare_s16(const void *constants, const nn_view *in1, const nn_view *in2,
                    const nn_view *out, const nn_window *window);
void nn_neg_s16(const nn_view *in, const nn_view *out, const nn_window *window);

/* Any function of int16: `table` has its values at 513 places, between which it is interpolated. */
typedef struct {
    int16_t table[514]; /* the last only fills up */
} nn_wide_lut_constants;

void nn_lut_s16(const void *constants, const nn_view *in, const nn_view *out,
                const nn_window *window);

typedef struct {
    float input_scale, output_scale;
} nn_sqrt_constants;

void nn_sqrt_s16(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window);

/* RELU, RELU6 and LEAKY_RELU: a factor for inputs below 0, and one for the others. ABS has only the
 * latter. */
typedef struct {
    int32_t positive_multiplier, positive_shift, negative_multiplier, negative_shift;
    int32_t clamp_min, clamp_max;
} nn_leaky_constants;

void nn_leaky_relu_s16(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_abs_s16(const void *constants, const nn_view *in, const nn_view *out,
                const nn_window *window);

/* `table`: 65536 / (1 + exp(-i / 24)). An input times the multiplier, shifted right with rounding,
 * counts steps of 1 / 12288. */
typedef struct {
    int32_t multiplier, right_shift;
    uint16_t table[256];
} nn_sigmoid_constants;

void nn_logistic_s16(const void *constants, const nn_view *in, const nn_view *out,
                     const nn_window *window);
void nn_tanh_s16(const void *constants, const nn_view *in, const nn_view *out,
                 const nn_window *window);

/* exp(x) for x from -10 to 0, and 1 / (1 + x) for x from 0 to 1, in 512 steps each. */
typedef struct {
    int32_t multiplier, shift;                   /* that bring differences to steps of 10 / 65535 */
    int16_t exponentials[514], reciprocals[514]; /* the last of each only fills up */
} nn_wide_softmax_constants;

void nn_softmax_s16(const void *constants, const nn_view *in, const nn_view *out,
                    const nn_window *window);
/* constants: nn_softmax_constants; shares of 65536, less 32768. */
void nn_softmax_s8_s16(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);

/* QUANTIZE among integers; CAST where `casts`. */
typedef struct {
    int32_t input_zero_point, output_zero_point, multiplier, shift, clamp_min, clamp_max, casts;
} nn_convert_constants;

void nn_convert_s8_s16(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_convert_s8_s32(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_convert_s16_s8(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_convert_s16_s16(const void *constants, const nn_view *in, const nn_view *out,
                        const nn_window *window);
void nn_convert_s16_s32(const void *constants, const nn_view *in, const nn_view *out,
                        const nn_window *window);
void nn_convert_s32_s8(const void *constants, const nn_view *in, const nn_view *out,
                       const nn_window *window);
void nn_convert_s32_s16(const void *constants, const nn_view *in, const nn_view *out,
                        const nn_window *window);

/* As their namesakes of bytes. nn_copy_s8 and nn_mirror_pad_s8 serve int16 too: the bytes of an
 * element are a dimension of their own. */
void nn_concat_s16(const nn_view *in, const nn_view *out, const nn_window *window, int32_t channel);
void nn_fill_s16(const void *constants, int8_t *out, int32_t bytes);
void nn_resize_nearest_s16(const nn_resize_geometry *geometry, const nn_view *in,
                           const nn_view *out, const nn_window *window);
void nn_resize_bilinear_s16(const nn_resize_geometry *geometry, const nn_view *in,
                            const nn_view *out, const nn_window *window);
/* REDUCE_MAX, REDUCE_MIN. */
void nn_reduce_max_s8(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_min_s8(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_max_s16(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);
void nn_reduce_min_s16(const nn_reduce_geometry *geometry, const int8_t *in, int8_t *out);

/* REDUCE_PROD: every product so far is rounded to `multiplier` / 2^shift of itself, halves up. */
typedef struct {
    int32_t input_zero_point, output_zero_point, multiplier, shift;
} nn_product_constants;

void nn_reduce_prod_s8(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                       int8_t *out);
void nn_reduce_prod_s16(const nn_reduce_geometry *geometry, const void *constants, const int8_t *in,
                        int8_t *out);

/* ARG_MAX, ARG_MIN over `count` elements that lie `inner` apart; `flip` is 0 for the greatest, -1
 * for the least. `out` has int32_t, or int64_t if `wide`. */
typedef struct {
    int32_t outer, count, inner, flip, wide;
} nn_arg_geometry;

void nn_arg_extreme_s8(const nn_arg_geometry *geometry, const int8_t *in, int8_t *out);

/* GATHER: `count` elements of `inner` bytes of a dimension of `size`, from each of `outer`. */
typedef struct {
    int32_t outer, size, count, inner;
    const int32_t *indices;
} nn_gather_geometry;

void nn_gather_s8(const nn_gather_geometry *geometry, const int8_t *in, int8_t *out);

/* DEPTH_TO_SPACE, SPACE_TO_DEPTH: squares of block x block pixels. */
typedef struct {
    int32_t block;
} nn_square_geometry;

void nn_depth_to_space_s8(const nn_square_geometry *geometry, const nn_view *in, const nn_view *out,
                          const nn_window *window);
void nn_space_to_depth_s8(const nn_square_geometry *geometry, const nn_view *in, const nn_view *out,
                          const nn_window *window);

/* BATCH_MATMUL: for each of a box of `size`, a matrix of `rows` by `columns`. Element (r, k) of the
 * first operand lies at r * x_row + k * x_step, (k, c) of the second at k * y_step + c * y_column.
 */
typedef struct {
    int32_t rank;
    int32_t size[NN_MAX_RANK], x_stride[NN_MAX_RANK], y_stride[NN_MAX_RANK];
    int32_t rows, inner, columns, x_row, x_step, y_step, y_column;
} nn_matmul_geometry;

typedef struct {
    int32_t input1_zero_point, input2_zero_point;
    int32_t output_zero_point, output_multiplier, output_shift;
} nn_matmul_constants;

/* Of the views only where they begin matters. For int16 the output is the sum * multiplier, shifted
 * right by output_shift, halves up. */
void nn_batch_matmul_s8(const nn_matmul_geometry *geometry, const void *constants,
                        const nn_view *in1, const nn_view *in2, const nn_view *out);
void nn_batch_matmul_s16(const nn_matmul_geometry *geometry, const void *constants,
                         const nn_view *in1, const nn_view *in2, const nn_view *out);

#endif
