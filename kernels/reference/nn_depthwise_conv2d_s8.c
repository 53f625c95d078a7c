/* DEPTHWISE_CONV_2D: four channels at a time over all taps; other depth multipliers one by one. */
#include "nn_conv.h"

#define BLOCK 4 /* channels whose weights of a tap lie side by side */

/* What the taps of one output pixel meet. */
typedef struct {
    const nn_view *in;
    nn_taps rows, columns;
    int32_t y, x; /* of the first tap that meets the input */
    int32_t kernel_h, kernel_w, dilation_h, dilation_w;
    int32_t multiplier; /* output channels of an input channel */
    int32_t outputs;    /* channels */
    int32_t taps;       /* weights of a channel */
} patch;

/* A rectangle of taps, as walks over inputs and weights; in bytes. */
typedef struct {
    const int8_t *x, *w; /* of the first tap and channel */
    int32_t x_channel;   /* from channel to channel: 0 for padding */
    int32_t rows;
    int32_t x_step, w_span;         /* from tap to tap; all weights of a row */
    int32_t x_row_step, w_row_step; /* from row to row */
    const int8_t *x_end;            /* of the ring of rows, */
    int32_t x_ring;                 /* and its size */
} walk;

/* Adds the products of channels [c, c + 4); `weights`: how far theirs are behind the first ones'.
 */
NN_OUTLINE void sum_walk4(int32_t sums[4], const walk *t, int32_t c, int32_t weights) {
    const int8_t *x_row = t->x + c * t->x_channel, *w_row = t->w + weights, *x_end = t->x_end + c;
    const int32_t x_step = t->x_step;
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3], rows = t->rows;
    for (;;) {
        const int8_t *x = x_row, *w = w_row, *w_end = w_row + t->w_span;
        do {
            s0 += x[0] * *w++;
            s1 += x[1] * *w++;
            s2 += x[2] * *w++;
            s3 += x[3] * *w++;
            x += x_step;
        } while (w != w_end);
        if (--rows == 0) {
            break;
        }
        w_row += t->w_row_step;
        x_row += t->x_row_step;
        if (x_row >= x_end) {
            x_row -= t->x_ring;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* The taps in `rows` and `columns` as a walk over the input; 0 if there are none, or if the column
 * window wraps around between them. */
NN_OUTLINE int walk_inside(walk *t, const patch *p, const int8_t *weights) {
    const nn_view *in = p->in;
    const int32_t column = nn_column(in, p->x), columns = p->columns.end - p->columns.first;
    t->rows = p->rows.end - p->rows.first;
    if (t->rows == 0 || columns == 0 || p->multiplier != 1 ||
        column + (columns - 1) * p->dilation_w >= in->ring_cols) {
        return 0;
    }
    t->x = nn_row(in, p->y) + column * in->pixel_stride;
    t->w = weights + (p->rows.first * p->kernel_w + p->columns.first) * BLOCK;
    t->x_channel = 1;
    t->x_step = p->dilation_w * in->pixel_stride;
    t->w_span = columns * BLOCK;
    t->x_row_step = p->dilation_h % in->ring_rows * in->row_stride;
    t->w_row_step = p->kernel_w * BLOCK;
    t->x_ring = in->ring_rows * in->row_stride;
    t->x_end = in->data + t->x_ring;
    return 1;
}

/* Adds a rectangle of taps that meet padding (four times its value is at `padding`) to the walks,
 * unless it is empty; returns how many there are then. */
static inline int32_t add_outside(walk *walks, int32_t count, const patch *p, const int8_t *weights,
                                  const int8_t *padding, nn_taps rows, nn_taps columns) {
    walk *t = walks + count;
    if (rows.first == rows.end || columns.first == columns.end) {
        return count;
    }
    t->x = padding;
    t->w = weights + (rows.first * p->kernel_w + columns.first) * BLOCK;
    t->x_channel = 0;
    t->rows = rows.end - rows.first;
    t->x_step = 0;
    t->w_span = (columns.end - columns.first) * BLOCK;
    t->x_row_step = 0;
    t->w_row_step = p->kernel_w * BLOCK;
    t->x_end = padding + 4;
    t->x_ring = 0;
    return count + 1;
}

/* The taps that meet padding: rows above and below, columns left and right of the others. */
NN_OUTLINE int32_t walks_outside(walk *walks, int32_t count, const patch *p, const int8_t *weights,
                                 const int8_t *padding) {
    const nn_taps above = {0, p->rows.first}, below = {p->rows.end, p->kernel_h};
    const nn_taps left = {0, p->columns.first}, right = {p->columns.end, p->kernel_w};
    const nn_taps all = {0, p->kernel_w};
    count = add_outside(walks, count, p, weights, padding, above, all);
    count = add_outside(walks, count, p, weights, padding, below, all);
    count = add_outside(walks, count, p, weights, padding, p->rows, left);
    return add_outside(walks, count, p, weights, padding, p->rows, right);
}

/* Output channel c's weight of the first tap, and how far it is to the next tap's. */
static inline const int8_t *channel_weights(const patch *p, const int8_t *weights, int32_t c,
                                            int32_t *step) {
    const int32_t place = c % BLOCK, block = c - place;
    *step = nn_min(BLOCK, p->outputs - block);
    return weights + block * p->taps + place;
}

/* Output channel c's sum over the taps that meet the input; any ring, any depth multiplier. */
NN_OUTLINE int32_t sum_inside(const patch *p, const int8_t *weights, int32_t c) {
    const nn_view *in = p->in;
    const int32_t columns = p->columns.end - p->columns.first, ring = in->ring_cols;
    const int32_t rows = p->rows.end - p->rows.first, channel = c / p->multiplier;
    const int32_t apart = p->dilation_w % ring;
    int32_t sum = 0, y = p->y, first, step;
    weights = channel_weights(p, weights, c, &step);
    weights += (p->rows.first * p->kernel_w + p->columns.first) * step;
    if (columns == 0) {
        return 0;
    }
    first = nn_column(in, p->x);
    for (int32_t i = 0; i < rows; i++, y += p->dilation_h) {
        const int8_t *row = nn_row(in, y) + channel, *w = weights + i * p->kernel_w * step;
        int32_t column = first;
        for (int32_t left = columns; left > 0; left--, w += step) {
            sum += row[column * in->pixel_stride] * *w;
            column += apart;
            column -= column >= ring ? ring : 0;
        }
    }
    return sum;
}

/* The sum of output channel c's weights that meet padding. */
NN_OUTLINE int32_t sum_outside(const patch *p, const int8_t *weights, int32_t c) {
    int32_t sum = 0, step;
    weights = channel_weights(p, weights, c, &step);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int row_inside = ky >= p->rows.first && ky < p->rows.end;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, weights += step) {
            if (!row_inside || kx < p->columns.first || kx >= p->columns.end) {
                sum += *weights;
            }
        }
    }
    return sum;
}

/* All channels of one output pixel; `padding`: four times what the padding holds, NULL without. */
static inline void compute_pixel(const patch *p, const nn_conv_block *block, const int8_t *padding,
                                 int8_t *out) {
    walk walks[5];
    int32_t c = 0, count = walk_inside(walks, p, block->weights);
    if (count != 0 && padding != NULL) {
        count = walks_outside(walks, count, p, block->weights, padding);
    }
    for (; count != 0 && c + BLOCK <= p->outputs; c += BLOCK) {
        int32_t sums[4] = {0, 0, 0, 0};
        for (int32_t i = 0; i < count; i++) {
            sum_walk4(sums, walks + i, c, c * p->taps);
        }
        nn_conv_output4(sums, block->channels + c, &block->common, out + c);
    }
    for (; c < p->outputs; c++) {
        int32_t sum = sum_inside(p, block->weights, c);
        if (padding != NULL) {
            sum += *padding * sum_outside(p, block->weights, c);
        }
        out[c] = nn_conv_output(sum, block->channels + c, &block->common);
    }
}

static inline patch patch_for(const nn_conv_geometry *geometry, const nn_view *in,
                              const nn_view *out) {
    patch p;
    p.in = in;
    p.kernel_h = geometry->kernel_h;
    p.kernel_w = geometry->kernel_w;
    p.dilation_h = geometry->dilation_h;
    p.dilation_w = geometry->dilation_w;
    p.multiplier = geometry->groups;
    p.outputs = out->channels;
    p.taps = geometry->kernel_h * geometry->kernel_w;
    return p;
}

void nn_depthwise_conv2d_s8(const nn_conv_geometry *geometry, const void *constants,
                            const nn_view *in, const nn_view *out, const nn_window *window,
                            void *scratch) {
    const nn_conv_block block = nn_conv_open(constants, out->channels);
    const int8_t zero_point = (int8_t)block.common.input_zero_point;
    const int8_t padding[4] = {zero_point, zero_point, zero_point, zero_point};
    patch p = patch_for(geometry, in, out);
    (void)scratch;
    for (int32_t y = window->y0; y < window->y1; y++) {
        const int32_t top = y * geometry->stride_h - geometry->pad_top;
        int8_t *row = nn_out_row(out, y);
        p.rows = nn_valid_taps(top, in->height, p.kernel_h, p.dilation_h);
        p.y = top + p.rows.first * p.dilation_h;
        for (int32_t x = window->x0; x < window->x1; x++) {
            const int32_t left = x * geometry->stride_w - geometry->pad_left;
            int clipped = p.rows.end - p.rows.first < p.kernel_h;
            p.columns = nn_valid_taps(left, in->width, p.kernel_w, p.dilation_w);
            p.x = left + p.columns.first * p.dilation_w;
            clipped |= p.columns.end - p.columns.first < p.kernel_w;
            compute_pixel(&p, &block, clipped ? padding : NULL,
                          row + nn_column(out, x) * out->pixel_stride);
        }
    }
}
