/* TFLite_Detection_PostProcess: boxes are decoded where they are needed, and none is kept but those
 * that are found. Sums and products are those of LiteRT's kernel, in double and single precision.
 */
#include "nn_detection.h"

#include "nn_double.h"

#define VALUES 256 /* of an int8 */

typedef struct {
    const nn_detection_geometry *g;
    const nn_detection_constants *c;
    const int8_t *boxes, *scores;
    float *corners, *numbers, *values; /* outputs */
} job;

static void decode(const job *j, int32_t box, float *corner) {
    const uint64_t *tables = (const uint64_t *)(const void *)(j->c + 1);
    const float *anchor = (const float *)(const void *)(tables + 4 * VALUES) + 4 * (size_t)box;
    const int8_t *encoded = j->boxes + (size_t)box * (size_t)j->g->box_size;
    for (int32_t axis = 0; axis < 2; axis++) {
        const uint64_t *places = tables + VALUES * axis, *sizes = places + 2 * VALUES;
        const nn_double side = nn_double_of_float(anchor[2 + axis]);
        const nn_double place = nn_double_of_bits(places[(uint8_t)encoded[axis]]);
        const nn_double size = nn_double_of_bits(sizes[(uint8_t)encoded[2 + axis]]);
        const nn_double shifted =
            nn_double_sum(nn_double_product(place, side), nn_double_of_float(anchor[axis]));
        const float centre = nn_double_to_float(shifted);
        const float half = nn_double_to_float(nn_double_product(size, side));
        corner[axis] = centre - half;
        corner[2 + axis] = centre + half;
    }
}

static float lesser(float a, float b) {
    return b < a ? b : a;
}

static float greater(float a, float b) {
    return a < b ? b : a;
}

static int overlaps(const float *a, const float *b, float most) {
    const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
    if (area_a <= 0 || area_b <= 0) {
        return 0;
    }
    const float height = greater(lesser(a[2], b[2]) - greater(a[0], b[0]), 0);
    const float width = greater(lesser(a[3], b[3]) - greater(a[1], b[1]), 0);
    const float common = height * width;
    return common / (area_a + area_b - common) > most;
}

/* Whether one of `count` boxes, `stride` floats apart, overlaps this one too much. */
static int suppressed(const job *j, const float *corner, const float *kept, int32_t count,
                      int32_t stride) {
    for (int32_t n = 0; n < count; n++, kept += stride) {
        if (overlaps(kept, corner, j->c->most_overlap)) {
            return 1;
        }
    }
    return 0;
}

/* A walk over the boxes whose score is at least `least`: the best first, of equal ones the first.
 */
typedef struct {
    const int8_t *scores;
    int32_t stride, boxes, least;
    int32_t level, below, next; /* the present score, the next lower one, the next box to look at */
} walk;

static walk walk_over(const job *j, const int8_t *scores, int32_t stride) {
    const walk w = {scores, stride, j->g->boxes, j->c->least_score, VALUES, j->c->least_score - 1,
                    0};
    return w;
}

/* The next box; -1 where none is left. */
static int32_t next_box(walk *w) {
    for (;;) {
        for (; w->next < w->boxes; w->next++) {
            const int32_t score = w->scores[(size_t)w->next * (size_t)w->stride];
            if (score == w->level) {
                return w->next++;
            }
            if (score < w->level && score > w->below) {
                w->below = score;
            }
        }
        if (w->below < w->least) {
            return -1;
        }
        w->level = w->below;
        w->below = w->least - 1;
        w->next = 0;
    }
}

static float real_score(const job *j, int32_t score) {
    return j->c->scale * (float)(score - j->c->zero_point);
}

static void put(const job *j, int32_t row, const float *corner, int32_t number, int32_t score) {
    NN_MEMCPY(j->corners + 4 * (size_t)row, corner, 4 * sizeof(float));
    j->numbers[row] = (float)number;
    j->values[row] = real_score(j, score);
}

/* ---- by the best class of each box ----------------------------------------------------------- */

/* Moves the hole in a heap to a leaf, along the lower scores, and `place` up from there. */
static void sift(const int8_t *scores, float *heap, int32_t hole, int32_t size, float place) {
    const int32_t top = hole;
    const int8_t score = scores[(int32_t)place];
    while (2 * hole + 2 < size) {
        int32_t child = 2 * hole + 2;
        child -= scores[(int32_t)heap[child]] > scores[(int32_t)heap[child - 1]];
        heap[hole] = heap[child];
        hole = child;
    }
    if (2 * hole + 2 == size) {
        heap[hole] = heap[size - 1];
        hole = size - 1;
    }
    while (hole > top && scores[(int32_t)heap[(hole - 1) / 2]] > score) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = place;
}

/* The `count` best classes of a box, best first. Equal ones have the order that std::partial_sort
 * of GNU's C++ library gives them, with which LiteRT is built. */
static void rank(const int8_t *scores, int32_t classes, float *heap, int32_t count) {
    for (int32_t n = 0; n < count; n++) {
        heap[n] = (float)n;
    }
    for (int32_t n = count / 2 - 1; n >= 0; n--) {
        sift(scores, heap, n, count, heap[n]);
    }
    for (int32_t n = count; n < classes; n++) {
        if (scores[n] > scores[(int32_t)heap[0]]) {
            sift(scores, heap, 0, count, (float)n);
        }
    }
    for (int32_t last = count - 1; last > 0; last--) {
        const float place = heap[last];
        heap[last] = heap[0];
        sift(scores, heap, 0, last, place);
    }
}

static int32_t fast(const job *j, int8_t *best) {
    const nn_detection_geometry *g = j->g;
    const int32_t stride = g->classes + g->background;
    const int32_t count = g->classes_each < g->classes ? g->classes_each : g->classes;
    const int8_t *scores = j->scores + g->background;
    for (int32_t box = 0; box < g->boxes; box++, scores += stride) {
        best[box] = scores[0];
        for (int32_t n = 1; n < g->classes; n++) {
            best[box] = scores[n] > best[box] ? scores[n] : best[box];
        }
    }
    walk w = walk_over(j, best, 1);
    int32_t found = 0;
    while (found < g->detections) {
        const int32_t box = next_box(&w);
        if (box < 0) {
            break;
        }
        float corner[4];
        decode(j, box, corner);
        if (suppressed(j, corner, j->corners, found, 4 * g->classes_each)) {
            continue;
        }
        const int32_t row = found++ * g->classes_each;
        scores = j->scores + (size_t)box * (size_t)stride + g->background;
        rank(scores, g->classes, j->numbers + row, count);
        for (int32_t n = row; n < row + count; n++) {
            const int32_t number = (int32_t)j->numbers[n];
            put(j, n, corner, number, scores[number]);
        }
    }
    return found;
}

/* ---- each class by itself ---------------------------------------------------------------------
 */

/* Whether a detection with this score would be one of the best. */
static int has_room(const job *j, int32_t found, int32_t score) {
    return found < j->g->detections || j->values[found - 1] < real_score(j, score);
}

/* Adds a detection behind those with the same score or a better one; the last one may fall out.
 * Returns how many there are. */
static int32_t insert(const job *j, int32_t found, const float *corner, int32_t number,
                      int32_t score) {
    const float value = real_score(j, score);
    found = found < j->g->detections ? found + 1 : found;
    int32_t row = found - 1;
    for (; row > 0 && j->values[row - 1] < value; row--) {
        float *corners = j->corners + 4 * (size_t)row;
        NN_MEMCPY(corners, corners - 4, 4 * sizeof(float));
        j->numbers[row] = j->numbers[row - 1];
        j->values[row] = j->values[row - 1];
    }
    put(j, row, corner, number, score);
    return found;
}

static int32_t regular(const job *j, float *kept) {
    const nn_detection_geometry *g = j->g;
    const int32_t stride = g->classes + g->background;
    int32_t found = 0;
    for (int32_t number = 0; number < g->classes; number++) {
        walk w = walk_over(j, j->scores + g->background + number, stride);
        int32_t count = 0;
        while (count < g->per_class) {
            const int32_t box = next_box(&w);
            if (box < 0 || !has_room(j, found, w.level)) {
                break;
            }
            float *corner = kept + 4 * (size_t)count;
            decode(j, box, corner);
            if (!suppressed(j, corner, kept, count, 4)) {
                found = insert(j, found, corner, number, w.level);
                count++;
            }
        }
    }
    return found;
}

void nn_detection_postprocess_s8(const nn_detection_geometry *geometry, const void *constants,
                                 const nn_view *in1, const nn_view *in2, int8_t *const *outputs,
                                 void *scratch) {
    const size_t rows = (size_t)geometry->detections * (size_t)geometry->classes_each;
    const job j = {geometry,
                   (const nn_detection_constants *)constants,
                   in1->data,
                   in2->data,
                   (float *)(void *)outputs[0],
                   (float *)(void *)outputs[1],
                   (float *)(void *)outputs[2]};
    for (size_t n = 0; n < rows; n++) {
        j.corners[4 * n] = j.corners[4 * n + 1] = j.corners[4 * n + 2] = j.corners[4 * n + 3] = 0;
        j.numbers[n] = j.values[n] = 0;
    }
    *(float *)(void *)outputs[3] =
        (float)(geometry->regular ? regular(&j, (float *)scratch) : fast(&j, (int8_t *)scratch));
}
