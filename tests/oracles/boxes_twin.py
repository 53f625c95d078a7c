"""The boxes of nn_boxes.h in numpy: each operation is one of float32, in this order, rounded as in numpy.

    found, places = best(yolov8(sides, unit, scores, unit, 16, 8.0), 100, 0.25)
    stay = suppress(found, 0.45, True)

Only the exponential is buildtool's own, at most 0.51 units in the last place off.
"""

import numpy as np

from buildtool.graph.reference.realfunctions import exp

f = np.float32


def real(q, unit):  # q: int8; unit: (scale, zero point)
    return f(unit[0]) * (q.astype(np.int32) - unit[1]).astype(f)


def sigmoid(x):
    return f(1) / (f(1) + exp(-x))


def cells(maps):  # (rows, columns, ...) -> the column and the row of each cell
    rows, columns = maps.shape[:2]
    return np.tile(np.arange(columns, dtype=f), rows), np.repeat(np.arange(rows, dtype=f), columns)


def boxes(x, y, w, h, score, which):  # all of one length, in the order of places
    return np.stack([x, y, w, h, score, which.astype(f)], axis=1).astype(f)


def decoded(q, unit, objectness, width, height):  # q: (cells, 4 + objectness + classes)
    x, y, w, h, *scores = real(q, unit).T
    best = q[:, 4 + objectness :].argmax(axis=1)
    score = np.take_along_axis(np.stack(scores[objectness:]), best[None], 0)[0]
    score = scores[0] * score if objectness else score
    return boxes(x * f(width), y * f(height), w * f(width), h * f(height), score, best)


def yolov8(sides, sides_unit, scores, scores_unit, bins, stride):  # (rows, columns, numbers)
    logits = sides.reshape(-1, 4, bins).astype(np.int32)
    weights = exp(f(sides_unit[0]) * (logits - logits.max(axis=2, keepdims=True)).astype(f))
    total = below = np.zeros(weights.shape[:2], f)
    for i in range(bins):
        total, below = total + f(i) * weights[..., i], below + weights[..., i]
    left, top, right, bottom = (total / below).T
    column, row = cells(scores)
    q = scores.reshape(len(column), -1)
    x = (column + f(0.5) + (right - left) * f(0.5)) * f(stride)
    y = (row + f(0.5) + (bottom - top) * f(0.5)) * f(stride)
    score = sigmoid(real(q.max(axis=1), scores_unit))
    return boxes(x, y, (left + right) * f(stride), (top + bottom) * f(stride), score, q.argmax(axis=1))


def yolov5(q, unit, anchors, stride):  # (rows, columns, anchors * (5 + classes))
    column, row = (np.repeat(v, len(anchors)) for v in cells(q))
    t = q.reshape(len(column), -1)
    x, y, w, h, objectness = sigmoid(real(t[:, :5], unit)).T
    wide, high = np.tile(np.array(anchors, f), (len(t) // len(anchors), 1)).T
    score = objectness * sigmoid(real(t[:, 5:].max(axis=1), unit))
    return boxes(
        (f(2) * x - f(0.5) + column) * f(stride),
        (f(2) * y - f(0.5) + row) * f(stride),
        (f(2) * w) * (f(2) * w) * wide,
        (f(2) * h) * (f(2) * h) * high,
        score,
        t[:, 5:].argmax(axis=1),
    )


def blazeface(q, unit, scores, scores_unit, stride):  # (rows, columns, anchors * numbers), (..., anchors)
    count = scores.shape[2]
    column, row = (np.repeat(v, count) for v in cells(q))
    x, y, w, h = real(q.reshape(len(column), -1)[:, :4], unit).T
    x, y = x + (column + f(0.5)) * f(stride), y + (row + f(0.5)) * f(stride)
    score = sigmoid(real(scores.reshape(-1), scores_unit))
    return boxes(x, y, w, h, score, np.zeros(len(x)))


def best(found, capacity, least_score):  # found: boxes of all maps; returns (boxes, places)
    order = np.argsort(-found[:, 4], kind="stable")
    places = order[found[order, 4] >= f(least_score)][:capacity]
    return found[places], places


def shared(a, a_size, b, b_size):
    low = max(a - a_size * f(0.5), b - b_size * f(0.5))
    high = min(a + a_size * f(0.5), b + b_size * f(0.5))
    return high - low if high > low else f(0)


def suppress(found, most_overlap, each_class):  # returns the positions of the boxes that stay
    stay = []
    for i, (x, y, w, h, _, which) in enumerate(found):
        for j in stay:
            common = shared(found[j, 0], found[j, 2], x, w) * shared(found[j, 1], found[j, 3], y, h)
            union = found[j, 2] * found[j, 3] + w * h - common
            if common > f(most_overlap) * union and (not each_class or found[j, 5] == which):
                break
        else:
            stay.append(i)
    return stay
