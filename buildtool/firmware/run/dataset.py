"""Validation on a data set: many inputs through the firmware in a few runs, all through the reference.

How many inputs go through the firmware follows from an estimate of executed instructions and from rates that
are written here, not from a clock: the same command takes the same inputs on every machine.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from buildtool.api.requests.kinds import Validate, ValidateData
from buildtool.api.requests.parts import Data, OnDesk
from buildtool.base.errors import ToolError, UsageError, suggest
from buildtool.base.modes import Level
from buildtool.base.plain import duration
from buildtool.base.session import Session
from buildtool.emit.ctext import shape
from buildtool.firmware.datasets.arrays import DataSet
from buildtool.firmware.datasets.opened import choose_positions, open_data_set
from buildtool.firmware.firmware import Firmware
from buildtool.firmware.planned import Planned
from buildtool.firmware.run.accuracy import accuracy, check_labels, prediction, scores
from buildtool.firmware.run.compare import Array, Difference, difference
from buildtool.firmware.run.execute import TIMEOUT, Outcome, execute, image_of, subject
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.levels import reality, reality_answer
from buildtool.firmware.run.validation import bounds_of, is_rounded, keeps_bounds, sanitizer_flags
from buildtool.graph.types import Graph
from buildtool.plan.models import load_model, read_graph
from buildtool.schema.datasets import DatasetAnswer, DifferingInput, Share, ThroughFirmware
from buildtool.schema.runs import OperatorBound
from buildtool.target.choice import load_board

RUN_SECONDS = 30.0  # of one start of the emulator, by estimate
MOST_INPUTS, MOST_BYTES = 500, 1 << 26  # of one start
LATE = 40  # a run is ended after this many times its estimate
BOUNDED = 4  # inputs on which the bounds of operators that round otherwise are checked
MOST_SECONDS = 3600.0  # all inputs go through the firmware if that takes no longer;
SAMPLE_SECONDS = 600.0  # else a sample that takes this long
SHORT_SECONDS = 60.0  # of all inputs by the plan's estimate: then nothing is counted first
# Instructions a second of QEMU, of cores without vectors and with them, below what was measured (see
# docs/accuracy.md); multiply-accumulates a second of plain C.
EMULATED, EMULATED_VECTORS, NATIVE_MACS = 500_000_000, 25_000_000, 250_000_000
_VECTORS = ("mve", "zve", "xs3")  # words of the names of instruction sets


# ---- how much goes through the firmware --------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """The work of an input, and how much of it is done a second.

    `is_native`: the work is multiply-accumulates of this machine, not instructions of an emulated core;
    `is_counted`: it was counted in a run, not taken from the plan's cost.
    """

    work: int
    rate: int
    is_counted: bool = False
    is_native: bool = False

    @property
    def seconds(self) -> float:
        """The time of an input."""
        return self.work / self.rate


def _estimate(made: Planned, attached: OnDesk | None) -> Estimate | None:
    """The work by the plan; None for an attached board, which has its own speed."""
    if attached is not None and not attached.is_emulated:
        return None
    board = made.target.board
    if reality(board).level in (Level.HOST, Level.MODEL):
        return Estimate(made.plan.macs + 1, NATIVE_MACS, is_native=True)
    names = " ".join((board.core.isa, board.core.name, *board.core.families)).lower()
    rate = EMULATED_VECTORS if any(word in names for word in _VECTORS) else EMULATED
    return Estimate(int(made.plan.cost) + 1, rate)


def _count(made: Planned, firmware: Firmware, first: Sequence[Array], by_plan: Estimate) -> Estimate:
    """The instructions of an input, counted in the emulator; by the plan where that is not possible."""
    if reality(made.target.board).level is not Level.EMULATOR:
        return by_plan
    try:
        work = execute(made, firmware, [first], count=True).counted.total_instructions
    except ToolError:  # an emulator without plugins: the run itself says whether there is more amiss
        return by_plan
    return Estimate(work, by_plan.rate, is_counted=True) if work else by_plan


def through(count: int, each: Estimate | None) -> int:
    """How many of `count` inputs go through the firmware; 1 or more."""
    if each is None or count * each.seconds <= MOST_SECONDS:
        return count
    return max(1, min(count, int(SAMPLE_SECONDS / each.seconds)))


def _share(by: str, count: int, each: Estimate | None) -> Share:
    has_instructions = each is not None and not each.is_native
    return {
        "by": by,
        "instructions": each.work if each and has_instructions else None,
        "counted": bool(each and each.is_counted),
        "per_second": each.rate if each and has_instructions else None,
        "seconds": count * each.seconds if each else None,
    }


@dataclass(frozen=True)
class _Pace:
    """Inputs wanted and done, and the seconds that these took; `nominal`: seconds of one by estimate."""

    wanted: int
    nominal: float = 0.0
    done: int = 0
    took: float = 0.0

    def after(self, began: float, count: int) -> _Pace:
        """The same with `count` more inputs, run since the time `began`."""
        return replace(self, done=self.done + count, took=self.took + time.monotonic() - began)

    @property
    def left(self) -> float:
        """Seconds that the others will take."""
        each = self.took / self.done if self.done else self.nominal
        return (self.wanted - self.done) * each


class _Progress:
    """Tells the current input and the time left."""

    def __init__(self, session: Session, firmware: _Pace, reference: _Pace) -> None:
        self._session = session
        self._paces = {"firmware": firmware, "reference": reference}

    def running(self, which: str, began: float, now: int) -> None:
        """`now` more inputs have been run since the time `began`."""
        paces = {**self._paces, which: self._paces[which].after(began, now)}
        wanted, left = paces[which].wanted, duration(sum(pace.left for pace in paces.values()))
        at = min(paces[which].done + 1, wanted)
        self._session.tell(f"{which}: input {at:,} of {wanted:,}, {left} left")

    def ended(self, which: str, began: float, count: int) -> None:
        """`count` inputs have been run since the time `began`, and that run is over."""
        self._paces[which] = self._paces[which].after(began, count)


# ---- the runs ------------------------------------------------------------------------------------------


@dataclass
class _Job:
    """The inputs that are taken of a data set, the judge of their outputs, and what was found so far.

    Positions are those among the inputs that are taken. `made`: None where nothing goes through firmware.
    """

    session: Session
    judge: Judge
    given: DataSet
    taken: list[int]
    graph: Graph
    output: int | None  # the position among the graph's outputs of that with the classes
    sequence: int  # inputs from one reset of a network's state to the next
    made: Planned | None = None
    bounds: list[OperatorBound] = field(default_factory=list)
    by_reference: dict[int, int] = field(default_factory=dict)
    by_firmware: dict[int, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    inputs_run: int = 0
    values: list[set[int]] = field(default_factory=list)  # the bytes that each output had

    def resets(self, positions: Sequence[int]) -> list[bool]:
        """Before which of some inputs, which are whole sequences, the state is reset."""
        return [self.taken[at] % self.sequence == 0 for at in positions]

    def read(self, at: int) -> list[Array]:
        """The arrays of an input."""
        return self.given.read(self.taken[at])

    def refer(
        self,
        positions: Sequence[int],
        progress: _Progress,
        runs: Sequence[tuple[list[Array], dict[int, bytes]]] = (),
    ) -> None:
        """Inputs through the reference; `runs`: the arrays and the outputs of the firmware, if it ran."""
        for place, (at, reset) in enumerate(zip(positions, self.resets(positions), strict=True)):
            began = time.monotonic()
            progress.running("reference", began, 0)
            arrays, got = runs[place] if runs else (self.read(at), None)
            self._take(at, self.judge.refer(arrays, reset), got)
            progress.ended("reference", began, 1)

    def _take(self, at: int, expected: Mapping[int, Array], got: dict[int, bytes] | None) -> None:
        """Compares an input's outputs; `got`: None where it went through the reference alone."""
        t = None if self.output is None else self.graph.outputs[self.output]
        if t is not None:
            self.by_reference[at] = prediction(expected[t])
        if got is None:
            return
        self.differences += difference(self.graph, at, got, expected)
        self.values = self.values or [set() for _ in got]
        for seen, raw in zip(self.values, got.values(), strict=True):
            seen.update(raw)
        if t is not None:
            self.by_firmware[at] = prediction(np.frombuffer(got[t], self.graph.tensors[t].dtype.value))


def dataset_validation(request: ValidateData, session: Session) -> DatasetAnswer:
    """The answer to a `validate` request with a data set."""
    data = request.data
    with judging(request.reference, request.model) as judge:
        model = load_model(request.model, session)
        source, graph = read_graph(model, session)
        session.tell("opening the data set")
        sequence = request.sequence or 1 if graph.states else 1

        def choose(count: int) -> list[int]:
            return choose_sequences(count, data.wanted.limit, data.wanted.seed, sequence)

        given = open_data_set(data.wanted, graph, choose)
        taken = choose(len(given.names))
        output, no_accuracy = _output(graph, given, data)
        for at in taken:
            given.check(at)
        job = _Job(session, judge, given, taken, graph, output, sequence)
        if data.through == 0:
            judge.hear(model, source, graph, every=False)
            job.refer(range(len(taken)), _Progress(session, _Pace(0), _Pace(len(taken))))
            share = _share("asked", len(taken), None)
        else:
            share = _run_firmware(request, data, job)
        return _answer(request, data, model.name, job, share, no_accuracy)


def choose_sequences(count: int, limit: int | None, seed: int, sequence: int) -> list[int]:
    """Which of `count` inputs are taken: whole sequences, of at most `limit` inputs but at least one."""
    most = None if limit is None or limit >= count else max(1, limit // sequence)
    units = choose_positions(-(-count // sequence), most, seed)
    return [i for unit in units for i in range(unit * sequence, min(count, (unit + 1) * sequence))]


def _output(graph: Graph, given: DataSet, data: Data) -> tuple[int | None, str]:
    """The position of the output with the classes, or None and why there is no accuracy."""
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


def _run_firmware(request: Validate, data: Data, job: _Job) -> Share:
    """Runs a part of the inputs, or all, through the firmware, and all through the reference."""
    made, sources = subject(request, job.session)
    flags = sanitizer_flags(request, made.target.board)
    job.judge.hear(made.model, made.source, made.graph, every=False)
    job.made, job.graph, attached = made, made.graph, request.desk
    with image_of(request, made, sources, flags) as firmware:
        each = _estimate(made, attached)
        if data.through is None and each and len(job.taken) * each.seconds > SHORT_SECONDS:
            job.session.tell("counting the instructions of an input")
            each = _count(made, firmware, job.read(0), each) if attached is None else each
        count = min(data.through or through(len(job.taken), each), len(job.taken))
        positions = choose_sequences(len(job.taken), count, data.wanted.seed, job.sequence)
        seconds = each.seconds if each else 0.0
        progress = _Progress(job.session, _Pace(len(positions), seconds), _Pace(len(job.taken)))
        for part in _starts(positions, made.graph, seconds, job.sequence):
            inputs, began = [job.read(at) for at in part], time.monotonic()
            progress.running("firmware", began, 0)
            outcome = execute(
                made,
                firmware,
                inputs,
                attached=attached,
                resets=job.resets(part),
                timeout=max(TIMEOUT, LATE * seconds * len(part)),
                ran=functools.partial(progress.running, "firmware", began),
            )
            progress.ended("firmware", began, len(part))
            job.refer(part, progress, list(zip(inputs, outcome.outputs, strict=True)))
            job.inputs_run += len(part)
            job.outcomes.append(replace(outcome, outputs=[], traces=[]))
            if attached is not None and not attached.is_emulated:
                attached = attached._replace(is_flashed=True)
    job.refer(sorted(set(range(len(job.taken))) - set(positions)), progress)
    job.bounds = bounds_of(made, sources, [job.read(at) for at in positions[:BOUNDED]], request.desk, flags)
    return _share("estimate" if data.through is None else "asked", len(job.taken), each)


def _starts(positions: Sequence[int], graph: Graph, seconds: float, sequence: int) -> Iterator[list[int]]:
    """The inputs of each start: as many as take RUN_SECONDS by estimate, within bounds; whole sequences."""
    size = sum(graph.tensors[t].size for t in (*graph.inputs, *graph.outputs))
    most = min(MOST_INPUTS, max(1, MOST_BYTES // max(size, 1)))
    if seconds:
        most = max(1, min(most, int(RUN_SECONDS / seconds)))
    most = max(sequence, most // sequence * sequence)
    for start in range(0, len(positions), most):
        yield list(positions[start : start + most])


# ---- the answer ----------------------------------------------------------------------------------------


def _answer(
    request: Validate, data: Data, model: str, job: _Job, share: Share, no_accuracy: str
) -> DatasetAnswer:
    given, graph, made = job.given, job.graph, job.made
    board = made.target.board if made else load_board(request.target.board)
    measured = None
    if job.output is not None:
        labels = [given.labels[at] for at in job.taken]
        by_reference = [job.by_reference[at] for at in range(len(job.taken))]
        tensor = graph.tensors[graph.outputs[job.output]]
        measured = accuracy(tensor, labels, given.classes, by_reference, job.by_firmware)
    exact = not job.differences if made else None
    return {
        "model": model,
        "board": board.name,
        "data": Path(data.wanted.file.path).name,
        "inputs": len(job.taken),
        "inputs_there": len(given.names),
        "seed": data.wanted.seed if len(job.taken) < len(given.names) else None,
        "fed": [
            {"name": graph.tensors[t].name, "shape": shape(graph.tensors[t].shape), "how": how}
            for t, how in zip(graph.inputs, given.how, strict=True)
        ],
        "reference": job.judge.answer(),
        "requantise": str(made.target.requantise if made else request.target.requantise),
        "share": share,
        "firmware": _firmware(made, job) if made else None,
        "exact": exact,
        "within_bounds": keeps_bounds(job.bounds) if made and is_rounded(made) else exact,
        "bounds": job.bounds,
        "differing": [_differing(job, one) for one in sorted(job.differences, key=lambda d: d.input_set)],
        "accuracy": measured,
        "no_accuracy": no_accuracy,
        "note": board.note,
    }


def _differing(job: _Job, one: Difference) -> DifferingInput:
    index = job.taken[one.input_set]
    return {
        "index": index,
        "name": job.given.names[index],
        "tensor": one.name,
        "operator": one.operator,
        "elements": one.elements,
        "max_abs_diff": one.max_abs,
        "first_element": one.first,
    }


def _firmware(made: Planned, job: _Job) -> ThroughFirmware:
    """The figures of all runs together."""
    outcomes, found = job.outcomes, job.differences
    stacks = [one.stack_high_water for one in outcomes]
    return {
        **reality_answer(outcomes[0].reality),
        "compiler": outcomes[0].compiler,
        "strategy": made.plan.strategy,
        "inputs": job.inputs_run,
        "inputs_equal": job.inputs_run - len({one.input_set for one in found}),
        "elements_different": sum(one.elements for one in found),
        "max_abs_diff": max((one.max_abs for one in found), default=0),
        "output_values": sum(map(len, job.values)),
        "arena_bytes": made.plan.arena_bytes,
        "state_bytes": made.plan.state_bytes,
        "arena_high_water": max(one.arena_high_water for one in outcomes),
        "stack_high_water": None if None in stacks else max(stack or 0 for stack in stacks),
    }
