/* Boxes from the raw int8 outputs of detection networks: YOLO and BlazeFace.
 *
 * A list is begun, each output adds its boxes, and the best one of those that overlap stays. The
 * caller gives all memory. tests/oracles/boxes_twin.py is the same in numpy: the results have its
 * bits on every core.
 */
#ifndef NN_BOXES_H
#define NN_BOXES_H

#include "nn_image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    float x, y, w, h; /* centre and size, in the unit of strides and anchors: pixels of the input */
    float score;      /* 0 to 1 */
    int32_t class_index;
    int32_t place; /* the number of its cell or anchor, counted over all maps since the begin */
} nn_box;

/* The boxes so far, which are sorted: the best one first, equal scores by their place. */
typedef struct {
    nn_box *boxes;
    int32_t capacity, count;
    float least_score;
    int32_t places;
} nn_boxes;

/* An output of the network, or a part of it: numbers of rows x columns cells. */
typedef struct {
    const int8_t *data;   /* the first number of the first cell */
    nn_quantization unit; /* <net>_output_quantization(i) */
    int32_t rows, columns;
    int32_t cell_step; /* elements from a cell to the next one */
    int32_t step;      /* elements from a number of a cell to its next: 1 with channels last */
} nn_map;

/* Empties a list. Boxes with a lower score than `least_score` are not taken. Where more than
 * `capacity` boxes have that score, the best ones stay. */
void nn_boxes_begin(nn_boxes *list, nn_box *memory, int32_t capacity, float least_score);

/* Boxes that the network has decoded. A cell has x, y, w, h, then, with `objectness`, the score of
 * the box, then the scores of the classes. `width` and `height`: the input's, where the numbers are
 * shares of it, else 1. */
void nn_boxes_decoded(nn_boxes *list, const nn_map *map, int32_t objectness, int32_t classes,
                      float width, float height);

/* A scale of YOLOv8 (also v9, v11): `sides` has the logits of 4 x `bins` distances, `scores` those
 * of the classes, of the same cells. */
void nn_boxes_yolov8(nn_boxes *list, const nn_map *sides, const nn_map *scores, int32_t bins,
                     int32_t classes, float stride);

/* A scale of YOLOv5 (also v7): a cell has for each anchor the logits of x, y, w, h, objectness and
 * classes. `anchors`: widths and heights. */
void nn_boxes_yolov5(nn_boxes *list, const nn_map *map, const float (*anchors)[2], int32_t count,
                     int32_t classes, float stride);

/* A scale of BlazeFace, with `count` anchors in a cell: `boxes` has `numbers` numbers of each (x,
 * y, w, h, key points), `scores` a logit. */
void nn_boxes_blazeface(nn_boxes *list, const nn_map *boxes, const nn_map *scores, int32_t count,
                        int32_t numbers, float stride);

/* Removes every box whose overlap with a better one that stays is greater than `most_overlap`
 * (intersection over union), with `each_class` only of the same class. Returns how many stay. */
int32_t nn_boxes_suppress(nn_boxes *list, float most_overlap, int32_t each_class);

#ifdef __cplusplus
}
#endif

#endif
