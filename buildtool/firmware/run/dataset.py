"""Validation on a data set: many inputs through the firmware in a few runs, all through the reference."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from buildtool.base.errors import UsageError, suggest
from buildtool.emit.ctext import shape
from buildtool.firmware.datasets.opened import chosen, opened
from buildtool.firmware.run import share
from buildtool.firmware.run.accuracy import accuracy, check_labels, prediction, scores
from buildtool.firmware.run.bounded import bounds_of, is_rounded, within
from buildtool.firmware.run.compare import Array, Difference, difference
from buildtool.firmware.run.execute import TIMEOUT, Outcome, execute, image_of, subject
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.levels import named
from buildtool.firmware.run.share import Progress
from buildtool.firmware.run.validation import sanitizer_flags
from buildtool.plan.models import load_model, read_graph
from buildtool.target.choice import load_board

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import Validate, ValidateData
    from buildtool.api.requests.parts import Data, OnDesk
    from buildtool.base.session import Session
    from buildtool.firmware.datasets.arrays import DataSet
    from buildtool.firmware.firmware import Firmware
    from buildtool.firmware.planned import Planned
    from buildtool.firmware.run.share import Estimate
    from buildtool.graph.types import Graph
    from buildtool.schema.datasets import DatasetAnswer, DifferingInput, Share, ThroughFirmware
    from buildtool.schema.runs import OperatorBound
    from buildtool.target.types import Board

RUN_SECONDS = 30.0  # by estimate, of one start of the emulator
MOST_INPUTS, MOST_BYTES = 500, 1 << 26  # of one start
LATE = 40  # times what is estimated: then a run is ended
BOUNDED = 4  # inputs on which the bounds of operators that round otherwise are checked


@dataclass
class _Tally:
    """What has been found so far; positions are those among the inputs that are taken."""

    graph: Graph
    output: int | None  # the position among the graph's outputs of that with the classes
    by_reference: dict[int, int] = field(default_factory=dict)
    by_firmware: dict[int, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    inputs_run: int = 0
    values: list[set[int]] = field(default_factory=list)

    def take(self, at: int, expected: Mapping[int, Array], got: dict[int, bytes] | None) -> None:
        """Compares an input's outputs; `got`: None where it went through the reference alone."""
        if self.output is not None:
            self.by_reference[at] = prediction(expected[self.graph.outputs[self.output]])
        if got is None:
            return
        self.differences += difference(self.graph, at, got, expected)
        self.values = self.values or [set() for _ in got]
        for seen, raw in zip(self.values, got.values(), strict=True):
            seen.update(raw)
        if self.output is not None:
            tensor = self.graph.tensors[self.graph.outputs[self.output]]
            raw = got[self.graph.outputs[self.output]]
            self.by_firmware[at] = prediction(np.frombuffer(raw, tensor.dtype.value))

    def keep(self, outcome: Outcome) -> None:
        """Keeps of a run what its inputs' outputs are not."""
        self.inputs_run += len(outcome.outputs)
        self.outcomes.append(replace(outcome, outputs=[], traces=[]))


@dataclass(frozen=True)
class _Job:
    """The inputs that are taken of a data set, what computes their reference, and what is found."""

    session: Session
    given: DataSet
    taken: list[int]
    tally: _Tally
    judge: Judge
    sequence: int = 1  # inputs from one reset of a network's state to the next

    def resets(self, positions: Sequence[int]) -> list[bool]:
        """Before which of some inputs, which are whole sequences, the state is reset."""
        return [self.taken[at] % self.sequence == 0 for at in positions]

    def read(self, at: int) -> list[Array]:
        """The arrays of an input."""
        return self.given.read(self.taken[at])


def dataset_validation(request: ValidateData, session: Session) -> DatasetAnswer:
    """The answer to a `validate` request with a data set."""
    with judging(request.reference, request.model) as judge:
        return _judged(request, request.data, judge, session)


def _judged(request: Validate, data: Data, judge: Judge, session: Session) -> DatasetAnswer:
    model = load_model(request.model, session)
    source, graph = read_graph(model, session)
    session.tell("opening the data set")
    each = request.sequence or 1 if graph.states else 1

    def choose(count: int) -> list[int]:
        return _chosen(count, data.wanted.limit, data.wanted.seed, each)

    given = opened(data.wanted, graph, choose)
    taken = choose(len(given.names))
    output, no_accuracy = _output(graph, given, data)
    for at in taken:
        given.check(at)
    job = _Job(session, given, taken, _Tally(graph, output), judge, each)
    if data.through == 0:
        judge.hear(model, source, graph, every=False)
        _refer(job, range(len(taken)), Progress(session, 0, len(taken), 0.0))
        found = _Found(load_board(request.target.board), share.told("asked", len(taken), None), None, [])
    else:
        found = _through_firmware(request, data, job)
    return _answer(request, data, model.name, job, found, no_accuracy)


def _chosen(count: int, limit: int | None, seed: int, sequence: int) -> list[int]:
    """Which of `count` inputs are taken: at most `limit` (one sequence at the least), whole sequences."""
    most = None if limit is None or limit >= count else max(1, limit // sequence)
    units = chosen(-(-count // sequence), most, seed)
    return [i for unit in units for i in range(unit * sequence, min(count, (unit + 1) * sequence))]


def _output(graph: Graph, given: DataSet, data: Data) -> tuple[int | None, str]:
    """The position of the output with the classes; None and why where there is no accuracy."""
    if not given.labels:
        if data.scores:
            text = "it has no effect without labels"
            raise UsageError(text, option="scores", hint=suggest(scores=None))
        return None, "the data set has no labels"
    tensor, why = scores(graph, data.scores)
    if tensor is None:
        return None, why
    path = (data.wanted.labels or data.wanted.file).path
    check_labels(given.labels, given.classes, graph.tensors[tensor], path)
    return graph.outputs.index(tensor), ""


@dataclass(frozen=True)
class _Found:
    """What a request's target is, and what a run on it gave; `made`: None where there was none."""

    board: Board
    share: Share
    made: Planned | None
    bounds: list[OperatorBound]


def _through_firmware(request: Validate, data: Data, job: _Job) -> _Found:
    """Runs as many inputs as are wanted through the firmware, and all through the reference."""
    made, sources = subject(request, job.session)
    flags = sanitizer_flags(request, made.target.board)
    job.judge.hear(made.model, made.source, made.graph, every=False)
    job.tally.graph = made.graph
    with image_of(request, made, sources, flags) as firmware:
        each = share.estimate(made, request.desk)
        if data.through is None and each and len(job.taken) * each.seconds > share.SHORT_SECONDS:
            job.session.tell("counting the instructions of an input")
            each = share.counted(made, firmware, job.read(0), each) if request.desk is None else each
        count = min(data.through or share.through(len(job.taken), each), len(job.taken))
        positions = _chosen(len(job.taken), count, data.wanted.seed, job.sequence)
        count = len(positions)
        progress = Progress(job.session, count, len(job.taken), each.seconds if each else 0.0)
        _run(job, positions, made, firmware, request.desk, each, progress)
    rest = sorted(set(range(len(job.taken))) - set(positions))
    _refer(job, rest, progress)
    inputs = [job.read(at) for at in positions[:BOUNDED]]
    bounds = bounds_of(made, sources, inputs, request.desk, flags)
    by = "estimate" if data.through is None else "asked"
    return _Found(made.target.board, share.told(by, len(job.taken), each), made, bounds)


def _run(
    job: _Job,
    positions: Sequence[int],
    made: Planned,
    firmware: Firmware,
    desk: OnDesk | None,
    each: Estimate | None,
    progress: Progress,
) -> None:
    """Inputs through the firmware, many at each start of the emulator, and through the reference."""
    seconds = each.seconds if each else 0.0
    for part in _parts(positions, made.graph, seconds, job.sequence):
        inputs = [job.read(at) for at in part]
        began = time.monotonic()
        progress.running("firmware", began, 0)
        outcome = execute(
            made,
            firmware,
            inputs,
            desk=desk,
            resets=job.resets(part),
            timeout=max(TIMEOUT, LATE * seconds * len(part)),
            ran=lambda done, began=began: progress.running("firmware", began, done),  # type: ignore[misc]
        )
        progress.ended("firmware", began, len(part))
        if desk is not None and not desk.is_emulated:
            desk = desk._replace(is_flashed=True)
        resets = job.resets(part)
        for at, one, got, reset in zip(part, inputs, outcome.outputs, resets, strict=True):
            began = time.monotonic()
            progress.running("reference", began, 0)
            job.tally.take(at, job.judge.refer(one, reset), got)
            progress.ended("reference", began, 1)
        job.tally.keep(outcome)


def _refer(job: _Job, positions: Sequence[int], progress: Progress) -> None:
    """Inputs through the reference alone."""
    for at, reset in zip(positions, job.resets(positions), strict=True):
        began = time.monotonic()
        progress.running("reference", began, 0)
        job.tally.take(at, job.judge.refer(job.read(at), reset), None)
        progress.ended("reference", began, 1)


def _parts(positions: Sequence[int], graph: Graph, seconds: float, sequence: int) -> Iterator[list[int]]:
    """The inputs of each start: as many as take RUN_SECONDS by estimate, within bounds; whole sequences."""
    size = sum(graph.tensors[t].size for t in (*graph.inputs, *graph.outputs))
    most = min(MOST_INPUTS, max(1, MOST_BYTES // max(size, 1)))
    if seconds:
        most = max(1, min(most, int(RUN_SECONDS / seconds)))
    most = max(sequence, most // sequence * sequence)
    for start in range(0, len(positions), most):
        yield list(positions[start : start + most])


def _answer(
    request: Validate, data: Data, model: str, job: _Job, found: _Found, no_accuracy: str
) -> DatasetAnswer:
    given, tally, made = job.given, job.tally, found.made
    graph = tally.graph
    differing = [_differing(job, one) for one in sorted(tally.differences, key=lambda d: d.input_set)]
    rounded = made is not None and is_rounded(made)
    labels = [given.labels[at] for at in job.taken] if given.labels else []
    tensor = None if tally.output is None else graph.tensors[graph.outputs[tally.output]]
    by_reference = [tally.by_reference[at] for at in range(len(job.taken))] if tensor is not None else []
    return {
        "model": model,
        "board": found.board.name,
        "data": Path(data.wanted.file.path).name,
        "inputs": len(job.taken),
        "inputs_there": len(given.names),
        "seed": data.wanted.seed if len(job.taken) < len(given.names) else None,
        "fed": [
            {"name": graph.tensors[t].name, "shape": shape(graph.tensors[t].shape), "how": how}
            for t, how in zip(graph.inputs, given.how, strict=True)
        ],
        "reference": job.judge.told(),
        "requantise": str(made.target.requantise if made else request.target.requantise),
        "share": found.share,
        "firmware": _firmware(made, tally) if made else None,
        "exact": not differing if made else None,
        "within_bounds": None if made is None else within(found.bounds) if rounded else not differing,
        "bounds": found.bounds,
        "differing": differing,
        "accuracy": accuracy(tensor, labels, given.classes, by_reference, tally.by_firmware)
        if tensor is not None
        else None,
        "no_accuracy": no_accuracy,
        "note": found.board.note,
    }


def _differing(job: _Job, one: Difference) -> DifferingInput:
    index = job.taken[one.input_set]
    told = one.json()
    return {
        "index": index,
        "name": job.given.names[index],
        "tensor": told["tensor"],
        "operator": told["operator"],
        "elements": told["elements"],
        "max_abs_diff": told["max_abs_diff"],
        "first_element": told["first_element"],
    }


def _firmware(made: Planned, tally: _Tally) -> ThroughFirmware:
    """What all runs gave together."""
    outcomes, found = tally.outcomes, tally.differences
    stacks = [one.stack_high_water for one in outcomes]
    inputs = tally.inputs_run
    return {
        **named(outcomes[0].reality),
        "compiler": outcomes[0].compiler,
        "strategy": made.plan.strategy,
        "inputs": inputs,
        "inputs_equal": inputs - len({one.input_set for one in found}),
        "elements_different": sum(one.elements for one in found),
        "max_abs_diff": max((one.max_abs for one in found), default=0),
        "output_values": sum(map(len, tally.values)),
        "arena_bytes": made.plan.arena_bytes,
        "state_bytes": made.plan.state_bytes,
        "arena_high_water": max(one.arena_high_water for one in outcomes),
        "stack_high_water": None if None in stacks else max(stack or 0 for stack in stacks),
    }
