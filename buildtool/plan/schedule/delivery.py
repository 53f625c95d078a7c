"""The input image that is delivered row by row: which input it is, and which operators read it."""

from __future__ import annotations

from typing import NamedTuple

from buildtool.graph.liveness import alias_roots
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.turnedops import samples_at_once
from buildtool.graph.types import Graph, cached_on_graph
from buildtool.plan.schedule.receptive import row_inputs, streams


class Delivered(NamedTuple):
    """A network input that the application can deliver row by row.

    input: the network's input.
    tensor: the input as its readers see it, behind reshapes. Its rows are the ones that are delivered.
    readers: positions of the operators that read it, in order. The region of the first one asks for the rows.
    """

    input: int
    tensor: int
    readers: tuple[int, ...]

    @property
    def first(self) -> int:
        """Returns the position of the first reader; -1 if there is no reader."""
        return self.readers[0] if self.readers else -1


class Portions(NamedTuple):
    """How a row of the delivered image comes: in `number` portions of `size` bytes each."""

    number: int
    size: int


@cached_on_graph
def portions(graph: Graph) -> Portions:
    """Returns in which portions a row of the delivered image comes.

    It comes as one portion. A signal has only one row, which comes in portions of a few samples each.
    """
    image = delivered_image(graph)
    of = graph.tensors[image.tensor]
    _, height, width, _ = of.nhwc
    if height > 1:
        return Portions(1, of.row_bytes)
    samples = samples_at_once(graph, graph.ops[image.first]) if len(image.readers) == 1 else 1
    return Portions(width // samples, samples * of.pixel_bytes)


@cached_on_graph
def delivered_image(graph: Graph) -> Delivered:
    """Returns the network input that can be delivered row by row; the first input if none can.

    Of several such inputs, those are preferred whose first reader reads no other tensor row by row. (With
    another input, all rows would have to be delivered before this reader runs.) Among equals it is the
    largest one.
    """
    images = [_image(graph, t) for t in graph.inputs]
    possible = [image for image in images if objection(graph, image) is None]

    def merit(image: Delivered) -> tuple[bool, int]:
        return drives(graph, image), graph.tensors[image.input].size

    return max(possible, key=merit, default=images[0])


def drives(graph: Graph, image: Delivered) -> bool:
    """Returns whether rows of the image are delivered one by one to the region of its first reader.

    If that operator also reads another tensor row by row, all rows are delivered before the region runs.
    """
    return row_inputs(graph, graph.ops[image.first]) == (image.tensor,)


def _image(graph: Graph, t: int) -> Delivered:
    roots, readers, tensor = alias_roots(graph), list[int](), t
    for position, op in enumerate(graph.ops):
        read = [u for u in op.inputs if roots.get(u) == t]
        if read and op.kind not in ALIAS_KINDS:
            tensor = tensor if readers else read[0]
            readers.append(position)
    return Delivered(t, tensor, tuple(readers))


def objection(graph: Graph, image: Delivered) -> tuple[int, str] | None:
    """Returns why an input cannot be delivered row by row; None if it can.

    The result is the position of an operator (-1 if it is about no operator), and what is wrong in words.
    """
    roots, tensor = alias_roots(graph), graph.tensors[image.tensor]
    if any(roots.get(t) == image.input for t in graph.outputs):
        return -1, "is a network output, too"
    if not image.readers:
        return -1, "is not read"
    if len(tensor.shape) != 4 or tensor.shape[0] != 1:
        return image.first, f"reads it in shape {list(tensor.shape)}, not as one image"
    for position in image.readers:
        op = graph.ops[position]
        read = {t for t in op.inputs if roots.get(t) == image.input}
        if read != {image.tensor}:
            return position, "reads it in another shape than the operators before it"
        if not streams(graph, op) or image.tensor not in row_inputs(graph, op):
            return position, "does not read it row by row"
    return None
