"""The input that the examples generate for ds_cnn, and the outputs of LiteRT's reference kernels."""

import functools

import litert
import numpy as np

from buildtool import zoo

SHOWS = r"scores: ([-\d ]+)\n"  # what the applications print


def generated(count: int) -> np.ndarray:
    """The upper bytes of a linear congruential generator that begins with 1."""
    state, values = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 24) - 128)
    return np.array(values, np.int8)


@functools.cache
def scores() -> str:
    """The reference's scores of ds_cnn, as text."""
    text = reference("ds_cnn", generated(490).reshape(1, 49, 10, 1))
    assert len(set(text.split())) > 4  # scores that are all alike would prove nothing
    return text


def best() -> int:
    """The class that has the highest of these scores."""
    numbers = [int(word) for word in scores().split()]
    return numbers.index(max(numbers))


def reference(model: str, given: np.ndarray) -> str:
    """The reference's output of a network of the zoo, as text."""
    engine = litert.interpreter(zoo.build(model))
    engine.set_tensor(engine.get_input_details()[0]["index"], given)
    engine.invoke()
    found = engine.get_tensor(engine.get_output_details()[0]["index"]).reshape(-1).tolist()
    assert len(set(found)) > 4  # outputs that are all alike would prove nothing
    return " ".join(map(str, found))
