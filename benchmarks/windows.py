"""Counts single operators on windows on a board: as parts of groups that pass on a few columns at a time.

A convolution stands between two lookup tables, one of which may be missing, in a group of its own: so it
reads and writes the column windows that it has in streamed plans. Other operators run alone, on some rows or
columns of whole tensors at a time. Each shape is counted on a few windows, chosen with a fixed seed.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from single import Builder, Single

from buildtool.base.session import Session
from buildtool.emit.sources import emit
from buildtool.firmware.firmware import build_firmware
from buildtool.firmware.run.cycles import find_timer, time_blocks
from buildtool.graph.numbering import graph_of
from buildtool.graph.types import Attrs, Graph, OpKind
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.schedule.costs import Calls, region_calls
from buildtool.plan.schedule.receptive import accumulates, columns, rows, streams
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target.catalogue import select_all
from buildtool.target.executed import Executed
from buildtool.target.registry import plugin as find_plugin
from buildtool.target.types import Board, RunRequest, Target

# (rows, columns) of a hand-off; 0 columns: whole rows
WINDOWS = (
    *[(1, 1)] * 6,
    *[(1, 4)] * 4,
    *[(1, 8)] * 3,
    *[(1, 0), (2, 0), (3, 0), (1, 2), (1, 3), (1, 5), (1, 6), (1, 16), (2, 1), (3, 1)],
    *[(3, 2), (3, 4), (3, 8), (2, 2), (2, 4), (4, 4), (5, 1)],
)
CHOSEN = 6  # windows of each shape
MOST_OPERATORS = 340  # of an image
WEIGHT_BYTES, ACTIVATION_BYTES = 6_500_000, 2_500_000  # of an image
SESSION = Session()  # which knows blocks that were timed
CONVOLUTIONS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)


@dataclass(frozen=True)
class Windowed:
    """A measured operator: its graph and position, its kernel, its calls, and its instructions and cycles.

    `cycles` are by LLVM's model of the core, with ideal memories; None if there is no model.
    """

    graph: Graph
    position: int
    kernel: str
    calls: Calls
    instructions: int
    cycles: float | None


class Image:
    """The operators of one firmware image, and the groups in which they run."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.groups: list[Group] = []
        self.wanted: list[int] = []  # positions of the operators that are measured
        self.weights = 0

    def is_full(self, weights: int, inputs: int) -> bool:
        """Whether an operator with these bytes of weights and inputs does not fit and needs another image."""
        graph = self.builder.whole()
        held = sum(graph.tensors[t].size for t in graph.inputs) + inputs
        return bool(self.groups) and (
            len(self.builder.ops) > MOST_OPERATORS
            or self.weights + weights > WEIGHT_BYTES
            or held > ACTIVATION_BYTES
        )

    def add(self, single: Single, chosen: Sequence[tuple[int, int]], rng: random.Random) -> None:
        """Adds one operator several times, once for each of the windows `chosen`."""
        b = self.builder
        single(b)
        op = b.ops.pop()
        for step, pixels in chosen:
            around = rng.choice(["before", "after", "both"]) if pixels and op.kind in CONVOLUTIONS else ""
            ids: list[int] = []
            source = self._table(op.inputs[0], ids) if around in ("before", "both") else op.inputs[0]
            ids.append(len(b.ops))
            self.wanted.append(ids[-1])
            made = b.tensors[op.outputs[0]]
            operands = (source, *op.inputs[1:])
            result = b.op(op.kind, operands, op.attrs, made.quant, dtype=made.dtype, shape=made.shape)
            if around in ("after", "both"):
                self._table(result, ids)
            scheme = Scheme.H_CACHED if len(ids) > 1 else Scheme.OPERATOR
            self.groups.append(Group(tuple(ids), scheme, step, pixels))

    def _table(self, source: int, ids: list[int]) -> int:
        b = self.builder
        ids.append(len(b.ops))
        held = b.tensors[source]
        return b.op(OpKind.RELU, (source,), Attrs(), held.quant, dtype=held.dtype)


def images(singles: Sequence[Single], seed: int = 1) -> list[Image]:
    """Distributes the operators with their windows over as few images as the limit on memory allows."""
    rng = random.Random(seed)
    found = [Image()]
    for single in singles:
        alone = Builder()
        single(alone)
        graph = alone.whole()
        op = graph.ops[0]
        if not streams(graph, op) or accumulates(graph, op):
            continue
        wide, high = columns(graph, op), rows(graph, op)
        fitting = [(step, pixels) for step, pixels in WINDOWS if step <= high and pixels < wide]
        if not fitting:
            continue
        weights = CHOSEN * sum(t.size for t in graph.tensors if t.data is not None)
        if found[-1].is_full(weights, sum(graph.tensors[t].size for t in graph.inputs)):
            found.append(Image())
        found[-1].weights += weights
        found[-1].add(single, rng.sample(fitting, min(CHOSEN, len(fitting))), rng)
    return [image for image in found if image.groups]


def count(singles: Sequence[Single], target: Target, toolchain: str = "") -> Iterator[Windowed]:
    """Yields every operator in windows, with the instructions and cycles of all its calls."""
    for image in images(singles):
        made = image.builder.whole()
        graph = graph_of("single", made.tensors, made.ops, made.inputs, made.ops[-1].outputs)
        kernels = select_all(target, graph)
        regions = tuple(Region((group,)) for group in image.groups)
        timeline = Timeline.of(graph, regions, "overwritable")
        plan = assemble(timeline, target, kernels, strategy="best", in_place="none", enough=math.inf)
        instructions, cycles = run(graph, plan, target, toolchain)
        calls = {
            p: c for region in regions for p, c in region_calls(graph, region, plan.image).operators.items()
        }
        for p in image.wanted:
            yield Windowed(graph, p, plan.kernels[p], calls[p], instructions[p], cycles.get(p))


def run(
    graph: Graph, plan: Plan, target: Target, toolchain: str = ""
) -> tuple[Mapping[int, int], Mapping[int, float]]:
    """Builds and runs a plan; returns the instructions and the cycles of each operator.

    There are no cycles if LLVM has no model of the core.
    """
    plugin = find_plugin(target.board)
    sources = emit(graph, plan, target, "single")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tools = plugin.toolchain(target.board, toolchain)
        elf = build_firmware(sources, plan, target, tools, work).elf
        rng = np.random.default_rng(1)
        sizes = (graph.tensors[t].size for t in graph.inputs)
        data = b"".join(rng.integers(-128, 128, size, np.int8).tobytes() for size in sizes)
        outputs = ("output.bin", "report.txt")
        blocks = target.board.pipeline is not None
        request = RunRequest({"input.bin": data}, outputs, timeout=900, count=True, blocks=blocks)
        result = plugin.run(target.board, elf, request)
    return result.counts, cycles_of(result.executed, target.board) if result.executed else {}


def cycles_of(executed: Executed, board: Board, waits: bool = False) -> dict[int, float]:
    """Returns each operator's cycles by LLVM's model of the core; `waits` adds waits for memories."""
    timer = find_timer(board)
    if isinstance(timer, str):
        raise SystemExit(timer)
    parts = time_blocks(executed, board, timer, SESSION).parts
    waited = {op: 0 if waits else own.code + own.data for op, own in parts.items()}
    return {op: (own.cycles - waited[op]) / executed.invokes for op, own in parts.items()}
