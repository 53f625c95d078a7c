"""Copies of lines by words and by vectors leave what the plain kernel does, on the board's memory."""

import numpy as np
import pytest
from boardcalls import recording
from ckernels import six
from kernelboard import Call, Memory

SYMBOLS = {"cortex_m_dsp": "nn_copy_s8_dsp", "cortex_m_mve": "nn_copy_s8_mve"}
# lines, bytes of each, bytes from line to line in and out, first byte in and out
BOXES = [
    *[(5, count, count, count + gap, 0, 0) for count in (16, 32) for gap in (0, 4, 7, 16)],
    *[(4, count, count + 3, count, 512, 0) for count in (1, 3, 4, 15, 17, 31, 33, 64)],
    *[(4, count, count + 12, count + 8, 512, 0) for count in (4, 12, 16, 20, 48, 68)],
    *[(7, 24, 24, 28, first, 0) for first in (24, 25, 28, 40)],  # over its input, from above
    *[(9, 16, 16, 48, first, 0) for first in (288, 289, 300)],
    (6, 32, 32, 32, 8, 0),
    (6, 32, 32, 32, 0, 8),  # upwards: the plain kernel computes it
    (3, 20, 20, 40, 0, 10),
    (1, 200, 200, 200, 3, 0),
    (1, 77, 77, 77, 0, 300),
    (0, 16, 16, 16, 0, 300),
]
BYTES = 1024


def left(before, box):
    """Returns the bytes after the copy of lines in ascending order, each read before it is written."""
    lines, count, in_stride, out_stride, source, sink = box
    after = before.copy()
    for i in range(lines):
        line = after[source + i * in_stride :][:count].copy()
        after[sink + i * out_stride :][:count] = line
    return after


@pytest.mark.parametrize("family", SYMBOLS)
def test_lines_from_anywhere_to_anywhere(family):
    before = np.random.default_rng(1).integers(-128, 128, BYTES, np.int8)
    calls, places = [], []
    for lines, count, in_stride, out_stride, source, sink in BOXES:
        memory = Memory(len(calls))
        sizes = six([lines, count]), six([in_stride, 1]), six([out_stride, 1])
        geometry = memory.words(2, *(number for values in sizes for number in values))
        places.append(memory.put(before))
        ends = [type(places[-1])(places[-1].offset + first) for first in (source, sink)]
        calls.append(Call(SYMBOLS[family], (geometry, *ends), memory))
    with recording(family) as recorder:
        results = recorder.firmware("clang").run(calls)
    for box, place, result in zip(BOXES, places, results, strict=True):
        np.testing.assert_array_equal(result.array(place, (BYTES,)), left(before, box), str(box))
        changed = result.changed()
        assert np.all((changed >= place.offset) & (changed < place.offset + BYTES)), box
