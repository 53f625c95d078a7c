"""What the application of examples/keyword_firmware has to print: the reference's scores on its own input."""

from __future__ import annotations

import litert
import numpy as np

from buildtool import zoo


def made_up_input() -> np.ndarray:
    """As main.c makes it."""
    state, values = 1, []
    for _ in range(490):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 24) - 128)
    return np.array(values, np.int8).reshape(1, 49, 10, 1)


def expected_scores() -> list[int]:
    """LiteRT's reference kernels on the network `ds_cnn` and that input."""
    engine = litert.interpreter(zoo.build("ds_cnn"))
    engine.set_tensor(engine.get_input_details()[0]["index"], made_up_input())
    engine.invoke()
    scores: list[int] = engine.get_tensor(engine.get_output_details()[0]["index"]).reshape(-1).tolist()
    assert len(set(scores)) > 4  # scores that are all alike would prove nothing
    return scores
