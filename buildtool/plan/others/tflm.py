"""Arena offsets for TensorFlow Lite Micro: the network as the file has it, with TFLM's own rules.

Every tensor that is not constant has its own bytes (reshaped ones too), no output lies over its input, and
offsets and sizes are multiples of 16. The kernels' scratch is unknown here: TFLM places it around these
tensors, in addition to the height.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.base.session import Session
from buildtool.graph.tflite.flat import MALFORMED, FlatFile, RawTensor
from buildtool.graph.tflite.offline import with_offsets
from buildtool.plan.assemble.placement import SEARCH_NODES
from buildtool.plan.place.arena import Item, Problem, round_up, validate
from buildtool.plan.place.solver import improved

ALIGNMENT = 16  # bytes, TFLM's
_TYPES = {
    1: ("int8", "uint8", "bool"),
    2: ("int16", "uint16", "float16", "bfloat16"),
    4: ("int32", "uint32", "float32"),
    8: ("int64", "uint64", "float64", "complex64"),
    16: ("complex128",),
}
ITEM_BYTES = {name: size for size, names in _TYPES.items() for name in names}
MOST_BYTES = (1 << 31) - 1  # offsets are int32


@dataclass(frozen=True)
class Allocation:
    """A placement of a file's tensors.

    offsets: one per tensor; -1 for tensors outside the arena.
    height: bytes of the arena.
    bound: a lower bound of the height.
    tensors: how many are placed.
    """

    offsets: tuple[int, ...]
    height: int
    bound: int
    tensors: int


def write_plan_into_file(
    data: bytes, *, path: str = "", session: Session | None = None
) -> tuple[bytes, Allocation]:
    """Returns the .tflite file `data` with offsets for TFLM in its metadata, and the placement.

    `session` caches placements. `path` is for messages. Raises ModelError if the bytes are not a well-formed
    model, UnsupportedError for several subgraphs and for tensors without a fixed size.
    """
    with _add_path(path):
        file = FlatFile(data)
        if file.subgraphs != 1:
            raise UnsupportedError(f"{file.subgraphs} subgraphs", hint="unroll loops and conditions")
        allocation = _allocate(file, session)
        return with_offsets(data, allocation.offsets), allocation


@contextmanager
def _add_path(path: str) -> Iterator[None]:
    """Adds the file's path to errors, and turns errors of the schema's accessors into ModelError."""
    try:
        yield
    except BuildtoolError as error:
        raise error.at(path=path) from None
    except MALFORMED as error:
        raise ModelError("the file's structure is damaged", path=path) from error


def _allocate(file: FlatFile, session: Session | None) -> Allocation:
    lives = _lives(file)
    items, places = [], []
    for t, (first, last) in lives.items():
        tensor = file.tensor(t)
        if tensor.is_constant or tensor.variable:
            continue
        size = _size(tensor)
        if size:
            places.append(t)
            items.append(Item(first, last + 1, round_up(size, ALIGNMENT), ALIGNMENT))
    problem = Problem(tuple(items))
    solution = improved(problem, SEARCH_NODES, session)
    validate(problem, solution.offsets)
    if solution.height > MOST_BYTES:
        raise UnsupportedError(f"an arena of {solution.height} bytes; offsets have 31 bits")
    offsets = [-1] * file.tensor_count
    for t, offset in zip(places, solution.offsets, strict=True):
        offsets[t] = offset
    return Allocation(tuple(offsets), solution.height, problem.bound.bytes, len(places))


def _lives(file: FlatFile) -> dict[int, tuple[int, int]]:
    """Returns tensor -> the first and the last operator that need it, also for constants that are read."""
    first = dict.fromkeys(file.inputs, 0)
    last = dict(first)
    for position, op in enumerate(file.operators):
        for t in (*op.outputs, *op.inputs):
            if t >= 0:
                first.setdefault(t, position)
                last[t] = position
    for t in file.outputs:
        first.setdefault(t, 0)
        last[t] = max(len(file.operators) - 1, 0)
    return {t: (first[t], last[t]) for t in first}


def _size(tensor: RawTensor) -> int:
    if tensor.dtype not in ITEM_BYTES:
        raise UnsupportedError(f"a tensor of type {tensor.dtype}", tensor=tensor.name)
    if tensor.dynamic:
        hint = "re-export with a fixed input shape"
        raise UnsupportedError("its shape is only known at run time", tensor=tensor.name, hint=hint)
    return math.prod(tensor.shape) * ITEM_BYTES[tensor.dtype]
