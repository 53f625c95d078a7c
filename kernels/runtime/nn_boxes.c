#include "nn_boxes.h"

#include "nn_real_parts.h"

/* ---- numbers ----------------------------------------------------------------------------- */

static float real(const nn_map *map, int32_t value) {
    return map->unit.scale * (float)(value - map->unit.zero_point);
}

/* Not inlined: there are many calls, of a function of some 500 bytes. */
__attribute__((noinline)) static float exponential(float x) {
    return nn_real_exponential(x);
}

static float probability(const nn_map *map, int32_t value) {
    return 1.0F / (1.0F + exponential(-real(map, value)));
}

typedef float (*function)(const nn_map *map, int32_t value);

/* The smallest byte whose function is `least` or more, 128 where there is none; functions rise. */
static int32_t least_byte(const nn_map *map, function of, float least) {
    int32_t low = -128, high = 128;
    while (low < high) {
        const int32_t middle = (low + high + 256) / 2 - 128;
        if (of(map, middle) >= least) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static const int8_t *cell_of(const nn_map *map, int32_t cell) {
    return map->data + cell * map->cell_step;
}

/* The position of the largest of some numbers: the first one of equal ones. */
static int32_t largest(const int8_t *numbers, int32_t step, int32_t count) {
    int32_t best = 0;
    for (int32_t i = 1; i < count; i++) {
        if (numbers[i * step] > numbers[best * step]) {
            best = i;
        }
    }
    return best;
}

/* ---- the list ---------------------------------------------------------------------------- */

void nn_boxes_begin(nn_boxes *list, nn_box *memory, int32_t capacity, float least_score) {
    list->boxes = memory;
    list->capacity = capacity;
    list->count = 0;
    list->least_score = least_score;
    list->places = 0;
}

static void insert(nn_boxes *list, const nn_box *box) {
    int32_t i = list->count;
    if (list->capacity < 1 || !(box->score >= list->least_score)) {
        return;
    }
    if (i == list->capacity) {
        i--;
        if (!(box->score > list->boxes[i].score)) {
            return;
        }
    } else {
        list->count++;
    }
    for (; i > 0 && list->boxes[i - 1].score < box->score; i--) {
        list->boxes[i] = list->boxes[i - 1];
    }
    list->boxes[i] = *box;
}

/* ---- what networks end in ------------------------------------------------------------------ */

void nn_boxes_decoded(nn_boxes *list, const nn_map *map, int32_t objectness, int32_t classes,
                      float width, float height) {
    const int32_t step = map->step, first = objectness ? 5 : 4;
    for (int32_t cell = 0; cell < map->rows * map->columns; cell++) {
        const int8_t *numbers = cell_of(map, cell), *scores = numbers + first * step;
        const int32_t best = largest(scores, step, classes);
        const float score = real(map, scores[best * step]);
        const nn_box box = {real(map, numbers[0]) * width,
                            real(map, numbers[step]) * height,
                            real(map, numbers[2 * step]) * width,
                            real(map, numbers[3 * step]) * height,
                            objectness ? real(map, numbers[4 * step]) * score : score,
                            best,
                            list->places++};
        insert(list, &box);
    }
}

/* The mean of 0, 1, 2 ..., each weighted by the exponential of its logit. */
static float expected(const nn_map *map, const int8_t *logits, int32_t bins) {
    const int32_t most = logits[largest(logits, map->step, bins) * map->step];
    float sum = 0, total = 0;
    for (int32_t i = 0; i < bins; i++) {
        const float less = map->unit.scale * (float)(logits[i * map->step] - most);
        const float weight = exponential(less);
        sum += weight;
        total += (float)i * weight;
    }
    return total / sum;
}

void nn_boxes_yolov8(nn_boxes *list, const nn_map *sides, const nn_map *scores, int32_t bins,
                     int32_t classes, float stride) {
    const int32_t least = least_byte(scores, probability, list->least_score);
    for (int32_t cell = 0; cell < scores->rows * scores->columns; cell++, list->places++) {
        const int8_t *logits = cell_of(scores, cell), *bin = cell_of(sides, cell);
        const int32_t best = largest(logits, scores->step, classes);
        const int32_t value = logits[best * scores->step];
        float side[4]; /* left, top, right, bottom: in strides from the cell's centre */
        if (value < least) {
            continue;
        }
        for (int32_t i = 0; i < 4; i++) {
            side[i] = expected(sides, bin + i * bins * sides->step, bins);
        }
        const float column = (float)(cell % scores->columns), row = (float)(cell / scores->columns);
        const nn_box box = {(column + 0.5F + (side[2] - side[0]) * 0.5F) * stride,
                            (row + 0.5F + (side[3] - side[1]) * 0.5F) * stride,
                            (side[0] + side[2]) * stride,
                            (side[1] + side[3]) * stride,
                            probability(scores, value),
                            best,
                            list->places};
        insert(list, &box);
    }
}

/* The centre of a box of YOLOv5 along one dimension, and its size. */
static float centre(const nn_map *map, int8_t value, int32_t cell, float stride) {
    return (2.0F * probability(map, value) - 0.5F + (float)cell) * stride;
}

static float extent(const nn_map *map, int8_t value, float anchor) {
    const float twice = 2.0F * probability(map, value);
    return twice * twice * anchor;
}

void nn_boxes_yolov5(nn_boxes *list, const nn_map *map, const float (*anchors)[2], int32_t count,
                     int32_t classes, float stride) {
    const int32_t step = map->step, least = least_byte(map, probability, list->least_score);
    for (int32_t place = 0; place < map->rows * map->columns * count; place++, list->places++) {
        const int32_t cell = place / count, anchor = place % count;
        const int8_t *t = cell_of(map, cell) + anchor * (5 + classes) * step;
        if (t[4 * step] < least) { /* the score is at most the objectness */
            continue;
        }
        const int32_t best = largest(t + 5 * step, step, classes);
        const nn_box box = {centre(map, t[0], cell % map->columns, stride),
                            centre(map, t[step], cell / map->columns, stride),
                            extent(map, t[2 * step], anchors[anchor][0]),
                            extent(map, t[3 * step], anchors[anchor][1]),
                            probability(map, t[4 * step]) * probability(map, t[(5 + best) * step]),
                            best,
                            list->places};
        insert(list, &box);
    }
}

void nn_boxes_blazeface(nn_boxes *list, const nn_map *boxes, const nn_map *scores, int32_t count,
                        int32_t numbers, float stride) {
    const int32_t step = boxes->step, least = least_byte(scores, probability, list->least_score);
    for (int32_t place = 0; place < scores->rows * scores->columns * count;
         place++, list->places++) {
        const int32_t cell = place / count, anchor = place % count;
        const int32_t value = cell_of(scores, cell)[anchor * scores->step];
        const int8_t *t = cell_of(boxes, cell) + anchor * numbers * step;
        if (value < least) {
            continue;
        }
        const float column = (float)(cell % scores->columns), row = (float)(cell / scores->columns);
        const nn_box box = {real(boxes, t[0]) + (column + 0.5F) * stride,
                            real(boxes, t[step]) + (row + 0.5F) * stride,
                            real(boxes, t[2 * step]),
                            real(boxes, t[3 * step]),
                            probability(scores, value),
                            0,
                            list->places};
        insert(list, &box);
    }
}

/* ---- overlaps ------------------------------------------------------------------------------ */

/* How far two intervals overlap, given their centres and sizes. */
static float shared(float a, float a_size, float b, float b_size) {
    const float a_low = a - a_size * 0.5F, b_low = b - b_size * 0.5F;
    const float a_high = a + a_size * 0.5F, b_high = b + b_size * 0.5F;
    const float low = a_low > b_low ? a_low : b_low, high = a_high < b_high ? a_high : b_high;
    return high > low ? high - low : 0.0F;
}

static int overlap(const nn_box *a, const nn_box *b, float most_overlap) {
    const float common = shared(a->x, a->w, b->x, b->w) * shared(a->y, a->h, b->y, b->h);
    return common > most_overlap * (a->w * a->h + b->w * b->h - common);
}

int32_t nn_boxes_suppress(nn_boxes *list, float most_overlap, int32_t each_class) {
    const int32_t before = list->count;
    list->count = 0;
    for (int32_t i = 0; i < before; i++) {
        const nn_box *box = list->boxes + i;
        int32_t stays = 1;
        for (int32_t j = 0; stays && j < list->count; j++) {
            const nn_box *better = list->boxes + j;
            if (!each_class || better->class_index == box->class_index) {
                stays = !overlap(better, box, most_overlap);
            }
        }
        if (stays) {
            list->boxes[list->count++] = *box;
        }
    }
    return list->count;
}
