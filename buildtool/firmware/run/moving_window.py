"""Keeps the rows of a moving window, for a reference that runs the network on whole windows.

In each invoke, the window moves by some rows (a hop). The firmware runs the network of hops: it gets only the
new rows, and keeps the others in its state. The reference has no such state: it gets the whole window each
time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from buildtool.firmware.run.compare import Array
from buildtool.graph.types import Graph
from buildtool.plan.choose.hops import Hopping

WINDOWS = 3  # by default, a validation resets the network after the hops that fill this many windows


class MovingWindow:
    """The window's rows after each hop.

    - `hopping`: the network on the whole window, and for the tensors of the network of hops which rows of its
      tensors they are.
    - `graph`: the network of hops, with its operators in the order of a plan.
    """

    def __init__(self, hopping: Hopping, graph: Graph) -> None:
        self._hopping, self._graph = hopping, graph
        self._fill()

    def _fill(self) -> None:
        """Fills the window with the input's zero point."""
        tensor = self._hopping.window.tensors[self._hopping.window.inputs[0]]
        zero_point = tensor.quant.zero_point if tensor.quant else 0
        self._rows: Array = np.full(tensor.elements, zero_point, tensor.dtype.value)

    def push(self, inputs: Sequence[Array], reset: bool) -> list[Array]:
        """Adds the rows of a hop to the window, and returns the inputs of the network on the whole window."""
        if reset:
            self._fill()
        (new,) = inputs
        self._rows = np.concatenate([self._rows[new.size :], new.reshape(-1)])
        window = self._hopping.window
        return [self._rows.reshape(window.tensors[window.inputs[0]].shape)]

    def values(self, whole: Mapping[int, Array]) -> dict[int, Array]:
        """Returns the reference's values of the tensors of the network of hops, by index.

        `whole` has the values for the network on the whole window. Tensors whose values cannot be taken from
        there are left out.
        """
        graph, window, origins = self._graph, self._hopping.window, self._hopping.origins
        values = {
            hop_output: whole[window_output]
            for hop_output, window_output in zip(graph.outputs, window.outputs, strict=True)
            if window_output in whole
        }
        moments = self._hopping.analysis.moments
        for t in graph.activations():
            origin = origins.get(graph.tensors[t].name)
            if origin is None or origin.tensor not in whole:
                continue
            value = whole[origin.tensor].reshape(-1)
            if origin.rows:
                rows = value.reshape(moments[origin.tensor].rows, -1)
                value = np.concatenate([rows[low:high] for low, high in origin.rows])
            values[t] = value.reshape(graph.tensors[t].shape)
        return values


def count_hops(graph: Graph, windows: int) -> int:
    """Returns the number of hops in `windows` windows; 0 for a network without a moving window."""
    return windows * graph.window.hops if graph.window else 0
