/* The kernel at the end of SSD networks, and what it is told. */
#ifndef NN_DETECTION_H
#define NN_DETECTION_H

#include "nn.h"

/* `boxes` encoded boxes of `box_size` numbers, of which the first four count; `background` scores
 * of each box come before those of the classes. */
typedef struct {
    int32_t boxes, box_size, classes, background;
    int32_t detections;   /* at most */
    int32_t classes_each; /* rows of a detection, unless suppression is regular */
    int32_t per_class;    /* regular: at most so many of a class */
    int32_t regular;      /* boxes are suppressed in each class */
} nn_detection_geometry;

/* constants: nn_detection_constants, then four tables of 256 doubles, indexed by an int8's bits:
 * y and x in units of an anchor's side, half the height and half the width in the same units; then
 * the anchors: y, x, height and width, floats. */
typedef struct {
    int32_t least_score, zero_point; /* of the scores */
    float scale;
    float most_overlap; /* a larger share suppresses */
} nn_detection_constants;

/* TFLite_Detection_PostProcess. Outputs: boxes (top, left, bottom, right), classes, scores, and the
 * number of detections, all floats; rows without a detection are 0. Scratch: a byte for each box;
 * if regular, 16 bytes for each of min(per_class, boxes). */
void nn_detection_postprocess_s8(const nn_detection_geometry *geometry, const void *constants,
                                 const nn_view *in1, const nn_view *in2, int8_t *const *outputs,
                                 void *scratch);

#endif
