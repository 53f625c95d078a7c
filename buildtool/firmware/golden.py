"""Makes the checks that a network runs in the field, from the options of a request and a plan."""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import PlanError, UsageError, suggest
from buildtool.base.modes import Guards, Requantise
from buildtool.emit.golden import Checks, Golden, crc_of_outputs, made_up
from buildtool.emit.image import ALIGNMENT
from buildtool.firmware.datasets.arrays import MOST_INPUT_BYTES, input_values
from buildtool.firmware.planned import Planned
from buildtool.graph.types import DType, Graph
from buildtool.options.values import CheckOptions
from buildtool.plan.summary.fit import rooms

_MADE_UP = {DType.INT8, DType.UINT8, DType.INT16}  # types of which every bit pattern is an input


def make_checks(planned: Planned, wanted: CheckOptions) -> Checks | None:
    """Returns the checks that the emitted network runs, None for no checks: guard words, and the self-test
    with a golden input, whose output is known.

    Raises UsageError if the network cannot have the golden input.
    """
    if wanted == CheckOptions():
        return None
    if wanted.seed is None and wanted.golden is None:
        return Checks(wanted.guards)
    if planned.choice.requantise is not Requantise.EXACT:
        text = "its outputs are not the reference's, with which a golden output is computed"
        raise UsageError(text, option="requantise", hint=suggest(requantise="exact"))
    planned.session.tell("running the reference on the golden input")
    graph, data = planned.graph, _read_golden(planned, wanted)
    inputs = data or made_up(wanted.seed or 0, sum(graph.tensors[t].size for t in graph.inputs))
    return Checks(wanted.guards, Golden(wanted.seed or 0, data, crc_of_outputs(graph, inputs)))


def _read_golden(planned: Planned, wanted: CheckOptions) -> bytes:
    """Returns the bytes of the golden input from its file; b"" if the input is made from a seed."""
    graph, file = planned.graph, wanted.golden
    if file is None:
        _refuse_made_up(graph)
        return b""
    if len(graph.inputs) != 1:
        text = f"the network has {len(graph.inputs)} inputs, but a .npy file has only one"
        raise UsageError(text, path=file.path, option="golden", hint=suggest(self_test=0))
    if planned.hop is not None:
        text = "the network's input is a moving window, and a golden input is made for it"
        raise UsageError(text, path=file.path, option="golden", hint=suggest(self_test=0))
    data = file.read("the golden input", MOST_INPUT_BYTES)
    values = input_values(data, graph.tensors[graph.inputs[0]], file.path)
    return np.ascontiguousarray(values).tobytes()


def _refuse_made_up(graph: Graph) -> None:
    for number, t in enumerate(graph.inputs):
        dtype = graph.tensors[t].dtype
        if dtype not in _MADE_UP:
            text = f"input {number} is {dtype}, of which no values can be made from a seed"
            raise UsageError(text, option="self_test", hint=suggest(golden="FILE.npy"))


def refuse_guards(planned: Planned, guards: Guards) -> None:
    """Raises PlanError if there is no room for the guard words in the memory of an arena."""
    plan, board = planned.plan, planned.target.board
    more = 0 if guards is Guards.NONE else 2 * max(plan.alignment, ALIGNMENT)
    for name, size, room in zip(board.holders, plan.arenas, rooms(board, plan.state_bytes), strict=False):
        if size + more > room:
            text = (
                f"the arena's {size:,} bytes and {more} bytes of guards do not fit into the {room:,} bytes "
            )
            raise PlanError(f"{text}of memory '{name}'", path=planned.model.path, hint=suggest(guards=None))
