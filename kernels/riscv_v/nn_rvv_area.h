/* Poolings: the elements of an area, channels side by side in vectors. */
#ifndef NN_RVV_AREA_H
#define NN_RVV_AREA_H

#include "nn_area.h"
#include "nn_rvv.h"

/* Executes `take` with `at` at each pixel of an area, from `offset` bytes of it on. */
#define NN_RVV_FOR_PIXELS(area, offset, take)                                                      \
    do {                                                                                           \
        const nn_view *const in_ = (area)->in;                                                     \
        const int32_t step_ = in_->pixel_stride, ring_ = in_->ring_rows * in_->row_stride;         \
        const int32_t column_ = nn_column(in_, (area)->x);                                         \
        const int32_t run_ = nn_min((area)->columns, in_->ring_cols - column_);                    \
        const int32_t rest_ = ((area)->columns - run_) * step_;                                    \
        const int8_t *row_ = nn_row(in_, (area)->y) + (offset);                                    \
        const int8_t *const end_ = in_->data + (offset) + ring_;                                   \
        for (int32_t rows_ = (area)->rows; rows_ > 0; rows_--) {                                   \
            const int8_t *at = row_ + column_ * step_, *stop_ = at + run_ * step_;                 \
            for (; at != stop_; at += step_) {                                                     \
                take;                                                                              \
            }                                                                                      \
            for (at = row_, stop_ = row_ + rest_; at != stop_; at += step_) {                      \
                take;                                                                              \
            }                                                                                      \
            row_ += in_->row_stride;                                                               \
            row_ = row_ >= end_ ? row_ - ring_ : row_;                                             \
        }                                                                                          \
    } while (0)

#endif
