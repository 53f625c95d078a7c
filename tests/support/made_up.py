"""The input that the examples generate for ds_cnn, and the reference's outputs for it."""

import functools

import litert
import numpy as np

from buildtool import zoo

SHOWS = r"scores: ([-\d ]+)\n"  # what the applications print


def generated(count: int) -> np.ndarray:
    """Returns the upper bytes of a linear congruential generator with seed 1."""
    state, values = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 24) - 128)
    return np.array(values, np.int8)


@functools.cache
def scores() -> str:
    """Returns the reference's scores of ds_cnn as text."""
    text = reference("ds_cnn", generated(490).reshape(1, 49, 10, 1))
    assert len(set(text.split())) > 4  # equal scores would prove nothing
    return text


def best() -> int:
    """Returns the class with the highest score."""
    numbers = [int(word) for word in scores().split()]
    return numbers.index(max(numbers))


def reference(model: str, given: np.ndarray) -> str:
    """Returns the reference's output of a network of the zoo as text."""
    engine = litert.interpreter(zoo.build(model))
    engine.set_tensor(engine.get_input_details()[0]["index"], given)
    engine.invoke()
    values = engine.get_tensor(engine.get_output_details()[0]["index"]).reshape(-1).tolist()
    assert len(set(values)) > 4  # equal outputs would prove nothing
    return " ".join(map(str, values))
