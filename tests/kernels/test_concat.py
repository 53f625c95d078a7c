"""A part of a concatenation from any ring to any ring: its channels of the window's pixels, and no others."""

from ctypes import byref, c_int32

import numpy as np
from ckernels import View, call, numbers
from hypothesis import given, settings
from hypothesis import strategies as st


def ring(array, shape):
    """A view of `array`, which holds a part of a tensor of `shape`."""
    rows, columns, channels = array.shape
    return View(array.ctypes.data, columns * channels, channels, rows, columns, 0, *shape)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(data=st.data())
def test_a_part_goes_to_its_channels(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    height, width, channels, all_channels = draw(1, 6), draw(1, 6), draw(1, 5), draw(5, 9)
    y0, x0, channel = draw(0, height - 1), draw(0, width - 1), draw(0, all_channels - channels)
    y1, x1 = draw(y0 + 1, height), draw(x0 + 1, width)
    random = np.random.default_rng(draw(0, 99))
    held = [(draw(y1 - y0, height), draw(x1 - x0, width), n) for n in (channels, all_channels)]
    source, result = (random.integers(-128, 128, shape, dtype=np.int8) for shape in held)
    wanted = result.copy()
    for y in range(y0, y1):
        for x in range(x0, x1):
            pixel = source[y % held[0][0], x % held[0][1]]
            wanted[y % held[1][0], x % held[1][1], channel : channel + channels] = pixel
    views = ring(source, (height, width, channels)), ring(result, (height, width, all_channels))
    call("nn_concat_s8", *map(byref, views), byref(numbers(y0, y1, x0, x1)), c_int32(channel))
    np.testing.assert_array_equal(result, wanted)
