/* How the window of a call is cut into pieces that threads compute at the same time.
 *
 * A kernel's entry fills an nn_call in and hands its window to nn_split. Pieces are rows, columns
 * or groups of channels of the window, whichever leaves the least to the thread that has most; rows
 * where that is equal, but channels if the kernel makes each group of them ready. A call with less
 * work than a fork and a join cost stays whole.
 *
 * An output may lie over inputs that die (nn.h). What is computed at once must then not write over
 * what it reads, so the window is taken in batches of rows from the top: as many rows as fit
 * between a batch's output and its input. One row at a time is always enough under the contract
 * `row`, whose distance keeps a row's output below the rows that the row reads. Under the contract
 * `pixel` an output that lies exactly on its input is no conflict, since an element is read and
 * written by one thread; where it lies elsewhere over it, a row that conflicts with itself is
 * computed by one thread, in the order that the contract wants. A kernel that goes through all rows
 * for some channels and then for others gets the same batches from a single thread.
 */
#ifndef NN_SPLIT_H
#define NN_SPLIT_H

#include "nn_arith.h"
#include "nn_parallel.h"

/* Issues of a thread that a fork and a join cost, as assumed; what is saved has to be more. */
#ifndef NN_FORK_ISSUES
#define NN_FORK_ISSUES 300
#endif

/* A part of a call: rows and columns, output channels from c0 to c1, scratch of its own. */
typedef struct {
    nn_window window;
    int32_t c0, c1;
    void *scratch;
} nn_piece;

typedef struct nn_call nn_call;

/* Computes a piece, its rows from the top and each row's columns from the left. */
typedef void nn_body(const nn_call *call, const nn_piece *piece);

struct nn_call {
    nn_body *body;
    const void *geometry, *constants;
    const nn_view *in, *in2; /* in2: NULL for kernels of one operand */
    const nn_view *out;
    void *scratch;
    int32_t scratch_bytes;               /* of each piece: the call has NN_THREADS times as many */
    int32_t kernel_h, stride_h, pad_top; /* rows that an output row reads, dilation included; */
    int32_t pixelwise;                   /* or whether an element reads its own place alone */
    int32_t channel_step;                /* where channels may be cut: multiples; 0: nowhere */
    int32_t issues;                      /* of an output pixel with all its channels, about */
    int32_t channels_first;              /* whether `body` computes rows again for other channels */
};

/* Addresses from `first` to `end`. */
typedef struct {
    uintptr_t first, end;
} nn_extent;

static inline nn_extent nn_extent_of(const nn_view *view) {
    const int32_t columns = view->ring_cols * view->pixel_stride;
    const int32_t rows = view->ring_rows * view->row_stride;
    const nn_extent extent = {(uintptr_t)view->data,
                              (uintptr_t)view->data + (uintptr_t)nn_max(rows, columns)};
    return extent;
}

/* Of rows [y0, y1): where they wrap around in their ring, of all of it. */
static inline nn_extent nn_extent_of_rows(const nn_view *view, int32_t y0, int32_t y1) {
    const int32_t first = y0 % view->ring_rows, rows = y1 - y0;
    nn_extent extent = nn_extent_of(view);
    if (view->row_stride > 0 && first + rows <= view->ring_rows) {
        extent.first = (uintptr_t)(view->data + first * view->row_stride);
        extent.end = extent.first + (uintptr_t)(nn_max(rows, 0) * view->row_stride);
    }
    return extent;
}

static inline int nn_meet(nn_extent a, nn_extent b) {
    return a.first < b.end && b.first < a.end;
}

/* Whether each element of the output lies where that of the input lies. */
static inline int nn_same_place(const nn_view *in, const nn_view *out) {
    return in->data == out->data && in->row_stride == out->row_stride &&
           in->pixel_stride == out->pixel_stride && in->ring_rows == out->ring_rows &&
           in->ring_cols == out->ring_cols && in->x0 == out->x0 && in->channels == out->channels;
}

/* Whether two views are parts of the channels of one tensor that have none in common. */
static inline int nn_side_by_side(const nn_view *a, const nn_view *b) {
    const intptr_t apart = (intptr_t)((uintptr_t)b->data - (uintptr_t)a->data);
    const int alike = a->row_stride == b->row_stride && a->pixel_stride == b->pixel_stride &&
                      a->ring_rows == b->ring_rows && a->ring_cols == b->ring_cols &&
                      a->x0 == b->x0;
    return alike && (apart >= 0 ? apart >= a->channels && apart + b->channels <= a->pixel_stride
                                : -apart >= b->channels && -apart + a->channels <= a->pixel_stride);
}

/* Whether the output lies over nothing that the call reads but at its own place. */
static inline int nn_clear(const nn_call *call, const nn_view *in) {
    return in == NULL || (call->pixelwise && nn_same_place(in, call->out)) ||
           nn_side_by_side(in, call->out) || !nn_meet(nn_extent_of(in), nn_extent_of(call->out));
}

/* Whether the output of rows [y0, y1) lies over what those rows read of an operand. */
static inline int nn_conflict(const nn_call *call, const nn_view *in, int32_t y0, int32_t y1) {
    const nn_extent out = nn_extent_of_rows(call->out, y0, y1);
    if (nn_clear(call, in) || !nn_meet(out, nn_extent_of(in))) {
        return 0;
    }
    const int32_t top = nn_max(0, y0 * call->stride_h - call->pad_top);
    const int32_t end = (y1 - 1) * call->stride_h - call->pad_top + call->kernel_h;
    return top < nn_min(end, in->height) &&
           nn_meet(out, nn_extent_of_rows(in, top, nn_min(end, in->height)));
}

/* Rows from y on that can be computed at once: 0 where the first one conflicts with itself. */
static inline int32_t nn_batch(const nn_call *call, int32_t y, int32_t y1) {
    int32_t rows = 0;
    while (y + rows < y1 && !nn_conflict(call, call->in, y, y + rows + 1) &&
           !nn_conflict(call, call->in2, y, y + rows + 1)) {
        rows++;
    }
    return rows;
}

#if NN_THREADS > 1

/* What is cut. */
typedef enum { NN_BY_ROWS, NN_BY_COLUMNS, NN_BY_CHANNELS } nn_axis;

typedef struct {
    const nn_call *call;
    nn_window window;
    nn_axis axis;
    int32_t pieces, each; /* each: bytes of scratch */
} nn_share;

static inline int32_t nn_ceil(int32_t a, int32_t b) {
    return (a + b - 1) / b;
}

/* Where piece number `piece` of `count` things begins: the first ones have one more. */
static inline int32_t nn_cut(int32_t count, int32_t pieces, int32_t piece) {
    return count / pieces * piece + nn_min(count % pieces, piece);
}

/* Threads that are worth a fork and a join each. No division: on 64 bits that is a slow function.
 */
static inline int32_t nn_worth(int64_t issues) {
    int32_t threads = 0;
    while (threads < NN_THREADS && issues >= (threads + 1) * (int64_t)NN_FORK_ISSUES) {
        threads++;
    }
    return threads;
}

static inline void nn_share_piece(const void *context, int32_t piece) {
    const nn_share *share = (const nn_share *)context;
    const nn_call *call = share->call;
    const int32_t channels = call->out->channels, step = call->channel_step;
    nn_piece own = {share->window, 0, channels, NULL};
    if (call->scratch != NULL) {
        own.scratch = (int8_t *)call->scratch + piece * share->each;
    }
    if (share->axis == NN_BY_ROWS) {
        const int32_t rows = own.window.y1 - own.window.y0;
        own.window.y1 = own.window.y0 + nn_cut(rows, share->pieces, piece + 1);
        own.window.y0 += nn_cut(rows, share->pieces, piece);
    } else if (share->axis == NN_BY_COLUMNS) {
        const int32_t columns = own.window.x1 - own.window.x0;
        own.window.x1 = own.window.x0 + nn_cut(columns, share->pieces, piece + 1);
        own.window.x0 += nn_cut(columns, share->pieces, piece);
    } else {
        const int32_t groups = nn_ceil(channels, step);
        own.c0 = step * nn_cut(groups, share->pieces, piece);
        own.c1 = nn_min(channels, step * nn_cut(groups, share->pieces, piece + 1));
    }
    call->body(call, &own);
}

/* Has rows, columns and channels computed whose pieces do not disturb one another. */
static inline void nn_split_batch(const nn_call *call, const nn_window *window) {
    const int32_t rows = window->y1 - window->y0, columns = window->x1 - window->x0;
    const int32_t channels = call->out->channels, step = call->channel_step;
    const int32_t groups = step > 0 ? nn_ceil(channels, step) : 1;
    const int32_t most = nn_worth((int64_t)rows * columns * call->issues);
    nn_share share = {call, *window, NN_BY_ROWS, nn_min(most, rows), call->scratch_bytes};
    if (most > 1) {
        /* the most that one piece has, in pixels of one group of channels */
        int64_t least = (int64_t)nn_ceil(rows, most) * columns * groups;
        if ((int64_t)rows * nn_ceil(columns, most) * groups < least) {
            least = (int64_t)rows * nn_ceil(columns, most) * groups;
            share.axis = NN_BY_COLUMNS;
            share.pieces = nn_min(most, columns);
        }
        const int64_t by_channels = (int64_t)rows * columns * nn_ceil(groups, most);
        if (groups > 1 && (by_channels < least || (by_channels == least && call->channels_first))) {
            share.axis = NN_BY_CHANNELS;
            share.pieces = nn_min(most, groups);
        }
    }
    if (share.pieces <= 1) {
        share.pieces = 1;
        nn_share_piece(&share, 0);
        return;
    }
    nn_parallel(nn_share_piece, &share, share.pieces);
}

#else

static inline void nn_split_batch(const nn_call *call, const nn_window *window) {
    const nn_piece whole = {*window, 0, call->out->channels, call->scratch};
    call->body(call, &whole);
}

#endif

/* Computes the window, by several threads where that is worth it. */
static inline void nn_split(const nn_call *call, const nn_window *window) {
    if ((NN_THREADS == 1 && !call->channels_first) ||
        (nn_clear(call, call->in) && nn_clear(call, call->in2))) {
        nn_split_batch(call, window);
        return;
    }
    nn_window part = *window;
    while (part.y0 < window->y1) {
        const int32_t rows = nn_batch(call, part.y0, window->y1);
        part.y1 = part.y0 + nn_max(rows, 1);
        if (rows > 0) {
            nn_split_batch(call, &part);
        } else {
            const nn_piece whole = {part, 0, call->out->channels, call->scratch};
            call->body(call, &whole);
        }
        part.y0 = part.y1;
    }
}

#endif
