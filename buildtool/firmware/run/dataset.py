"""Validates on a data set: the firmware runs on many inputs in a few runs, the reference on all of them.

The number of inputs for the firmware follows from an estimate of executed instructions and from the rates
below, not from a clock. So the same command uses the same inputs on every machine.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from buildtool.api.requests.kinds import Validate, ValidateData
from buildtool.api.requests.parts import AttachedRun, Data
from buildtool.base.errors import ToolError, UsageError, suggest
from buildtool.base.modes import Level
from buildtool.base.plain import duration
from buildtool.base.session import Session
from buildtool.emit.ctext import shape
from buildtool.firmware.datasets.arrays import DataSet
from buildtool.firmware.datasets.opened import choose_positions, open_data_set
from buildtool.firmware.datasets.recordings import open_recordings
from buildtool.firmware.firmware import Firmware
from buildtool.firmware.levels import is_native, reality, reality_answer
from buildtool.firmware.planned import Planned, hop_of_plan
from buildtool.firmware.run.accuracy import accuracy, check_labels, prediction, scores
from buildtool.firmware.run.compare import Array, Difference, difference
from buildtool.firmware.run.execute import TIMEOUT, Outcome, execute, image_of, plan_and_sources
from buildtool.firmware.run.judge import Judge, judging
from buildtool.firmware.run.validation import bounds_of, is_rounded, keeps_bounds, sanitizer_flags
from buildtool.graph.hop.moments import analyse
from buildtool.graph.types import Graph
from buildtool.plan.choose.hops import hopping_that_keeps_all
from buildtool.plan.models import load_model, read_graph
from buildtool.schema.datasets import DatasetAnswer, DifferingInput, Share, ThroughFirmware
from buildtool.schema.runs import OperatorBound
from buildtool.target.choice import load_board

RUN_SECONDS = 30.0  # estimated time of one start of the emulator
MOST_INPUTS, MOST_BYTES = 500, 1 << 26  # limits of one start
LATE = 40  # a run is stopped after this many times its estimate
BOUNDED = 4  # inputs on which the bounds of operators that round differently are checked
MOST_SECONDS = 3600.0  # the firmware runs on all inputs if that takes no longer
SAMPLE_SECONDS = 600.0  # otherwise it runs on a sample that takes this long
SHORT_SECONDS = 60.0  # if all inputs are estimated to take no longer, no instructions are counted first
# QEMU's instructions per second for cores without and with vectors, a little below the measured rates (see
# docs/guides/accuracy.md), and multiply-accumulates per second of plain C.
EMULATED, EMULATED_VECTORS, NATIVE_MACS = 500_000_000, 25_000_000, 250_000_000
_VECTORS = ("mve", "zve", "xs3")  # words in the names of instruction sets


# ---- the number of inputs for the firmware ------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """The work for one input, and the `rate`: work per second.

    If `is_native` is true, the work is in multiply-accumulates on this machine. Otherwise it is in
    instructions of an emulated core. If `is_counted` is true, a run has counted the work. Otherwise it
    follows from the plan's cost.
    """

    work: int
    rate: int
    is_counted: bool = False
    is_native: bool = False

    @property
    def seconds(self) -> float:
        """The estimated time for one input, in seconds."""
        return self.work / self.rate


def _estimate_work(planned: Planned, attached: AttachedRun | None) -> Estimate | None:
    """Returns the estimated work for one input, by the plan; None for an attached board, whose speed is
    unknown.
    """
    if attached is not None and not attached.is_emulated:
        return None
    board = planned.target.board
    if is_native(board, planned.choice.toolchain):
        return Estimate(planned.plan.macs + 1, NATIVE_MACS, is_native=True)
    names = " ".join((board.core.isa, board.core.name, *board.core.families)).lower()
    rate = EMULATED_VECTORS if any(word in names for word in _VECTORS) else EMULATED
    return Estimate(int(planned.plan.cost) + 1, rate)


def _count_work(planned: Planned, firmware: Firmware, first: Sequence[Array], by_plan: Estimate) -> Estimate:
    """Returns the work for the input `first`, counted in the emulator.

    If the work cannot be counted, returns `by_plan`, the estimate that follows from the plan.
    """
    if reality(planned.target.board).level is not Level.EMULATOR:
        return by_plan
    try:
        work = execute(planned, firmware, [first], count=True).counted.total_instructions
    except ToolError:  # an emulator without plugins; other errors come up again in the run itself
        return by_plan
    return Estimate(work, by_plan.rate, is_counted=True) if work else by_plan


def through(count: int, each: Estimate | None) -> int:
    """Returns on how many of `count` inputs the firmware runs, at least 1. `each` is the estimate for one
    input (None: all are run).
    """
    if each is None or count * each.seconds <= MOST_SECONDS:
        return count
    return max(1, min(count, int(SAMPLE_SECONDS / each.seconds)))


def _describe_share(by: str, count: int, each: Estimate | None) -> Share:
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
    """How far the runs of inputs have come.

    `total`: the number of inputs.
    `nominal`: the estimated time for one input, in seconds.
    `finished`: how many inputs are finished.
    `seconds`: the time that these took.
    """

    total: int
    nominal: float = 0.0
    finished: int = 0
    seconds: float = 0.0

    def after(self, began: float, count: int) -> _Pace:
        """Returns this pace with `count` more finished inputs, which have run since the time `began` (of
        time.monotonic).
        """
        seconds = self.seconds + time.monotonic() - began
        return replace(self, finished=self.finished + count, seconds=seconds)

    @property
    def left(self) -> float:
        """The seconds that the remaining inputs will take."""
        each = self.seconds / self.finished if self.finished else self.nominal
        return (self.total - self.finished) * each


class _Progress:
    """Reports the current input and the remaining time to a session."""

    def __init__(self, session: Session, firmware: _Pace, reference: _Pace) -> None:
        self._session = session
        self._paces = {"firmware": firmware, "reference": reference}

    def running(self, which: str, began: float, count: int) -> None:
        """Reports that `count` inputs of the current run are finished. `which` is "firmware" or "reference",
        `began` the time when the run began.
        """
        paces = {**self._paces, which: self._paces[which].after(began, count)}
        total, remaining = paces[which].total, duration(sum(pace.left for pace in paces.values()))
        at = min(paces[which].finished + 1, total)
        self._session.tell(f"{which}: input {at:,} of {total:,}, {remaining} left")

    def ended(self, which: str, began: float, count: int) -> None:
        """Records that a run of `count` inputs has ended, which began at the time `began`."""
        self._paces[which] = self._paces[which].after(began, count)


# ---- the runs ------------------------------------------------------------------------------------------


@dataclass
class _Job:
    """The chosen inputs of a data set, the `Judge` that has their right outputs, and the results until now.

    A position is an index into the chosen inputs. `planned` is None if no firmware is run.
    """

    session: Session
    judge: Judge
    data: DataSet
    chosen: list[int]
    graph: Graph
    output: int | None  # the position among the graph's outputs of the one with the classes
    sequence: int  # inputs from one reset of a network's state to the next
    planned: Planned | None = None
    bounds: list[OperatorBound] = field(default_factory=list)
    by_reference: dict[int, int] = field(default_factory=dict)
    by_firmware: dict[int, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    inputs_run: int = 0
    values: list[set[int]] = field(default_factory=list)  # the bytes that each output had

    def resets(self, positions: Sequence[int]) -> list[bool]:
        """Returns, for each of the inputs at `positions`, whether the state is reset before it.

        `positions` must be those of whole sequences.
        """
        return [self.chosen[at] % self.sequence == 0 for at in positions]

    def is_last(self, at: int) -> bool:
        """Whether an input is the last one of its sequence."""
        return (self.chosen[at] + 1) % self.sequence == 0

    def read(self, at: int) -> list[Array]:
        """Returns the arrays of the input at a position."""
        return self.data.read(self.chosen[at])

    def refer(
        self,
        positions: Sequence[int],
        progress: _Progress,
        runs: Sequence[tuple[list[Array], dict[int, bytes]]] = (),
    ) -> None:
        """Runs the reference on the inputs at `positions`, and compares the firmware's outputs with its
        outputs.

        `runs` has each input's arrays and the firmware's outputs for it. It is empty if the firmware has not
        run: then there is nothing to compare.
        """
        for place, (at, reset) in enumerate(zip(positions, self.resets(positions), strict=True)):
            began = time.monotonic()
            progress.running("reference", began, 0)
            arrays, outputs = runs[place] if runs else (self.read(at), None)
            self._compare(at, self.judge.refer(arrays, reset), outputs)
            progress.ended("reference", began, 1)

    def _compare(self, at: int, expected: Mapping[int, Array], outputs: dict[int, bytes] | None) -> None:
        """Compares the outputs for an input with `expected`; `outputs` is None if only the reference
        was run.
        """
        t = None if self.output is None else self.graph.outputs[self.output]
        if t is not None:
            self.by_reference[at] = prediction(expected[t])
        if outputs is None:
            return
        self.differences += difference(self.graph, at, outputs, expected)
        self.values = self.values or [set() for _ in outputs]
        for values, raw in zip(self.values, outputs.values(), strict=True):
            values.update(raw)
        if t is not None:
            self.by_firmware[at] = prediction(np.frombuffer(outputs[t], self.graph.tensors[t].dtype.value))


def dataset_validation(request: ValidateData, session: Session) -> DatasetAnswer:
    """Returns the answer to a `validate` request with a data set."""
    data = request.data
    with judging(request.reference, request.model) as judge:
        model = load_model(request.model, session)
        source, graph = read_graph(model, session)
        session.tell("opening the data set")
        data_set, chosen, sequence = _open(request, data, graph)
        output, no_accuracy = _find_output(graph, data_set, data)
        for at in chosen:
            data_set.check(at)
        job = _Job(session, judge, data_set, chosen, graph, output, sequence)
        if data.through == 0:
            rows = _hop_of(request)
            hop = None if rows is None else hopping_that_keeps_all(graph, rows)
            job.graph = graph if hop is None else hop.graph
            judge.set_network(model, source, job.graph, every=False, hop=hop)
            job.refer(range(len(chosen)), _Progress(session, _Pace(0), _Pace(len(chosen))))
            share = _describe_share("asked", len(chosen), None)
        else:
            share = _run_firmware(request, data, job)
        return _make_answer(request, data, model.name, job, share, no_accuracy)


def _open(request: ValidateData, data: Data, graph: Graph) -> tuple[DataSet, list[int], int]:
    """Opens the data set. Returns it, the positions of the chosen inputs, and the number of inputs in a
    sequence.

    On a moving window, an input has the new rows of one invoke (a hop), and a sequence is a recording.
    """
    wanted = data.wanted

    def choose(count: int, sequence: int) -> list[int]:
        return choose_sequences(count, wanted.limit, wanted.seed, sequence)

    rows = _hop_of(request)
    if rows is None:
        length = request.sequence or 1 if graph.states else 1
        data_set = open_data_set(wanted, graph, lambda count: choose(count, length))
        return data_set, choose(len(data_set.names), length), length
    if request.sequence:
        text = "it has no effect on a moving window: each recording is one sequence"
        raise UsageError(text, option="sequence", hint=suggest(sequence=None))
    analysis = analyse(graph, rows)
    fed = graph.tensors[analysis.input]
    image = analysis.moments[analysis.input].of_rows(rows)
    fed = replace(fed, shape=image, name=graph.tensors[graph.inputs[0]].name)
    data_set, hops = open_recordings(wanted, fed, lambda count, each: choose(count * each, each))
    return data_set, choose(len(data_set.names), hops), hops


def _hop_of(request: Validate) -> int | None:
    """Returns by how many rows the moving window advances in an invoke, by the options or the given plan;
    None without a moving window.
    """
    return request.options.hop if request.lock is None else hop_of_plan(request.lock.file)


def choose_sequences(count: int, limit: int | None, seed: int, sequence: int) -> list[int]:
    """Returns the positions of the inputs that are used, out of `count`.

    They are whole sequences of `sequence` inputs, drawn with `seed`: at most `limit` inputs in total (None:
    all), but at least one sequence.
    """
    most = None if limit is None or limit >= count else max(1, limit // sequence)
    units = choose_positions(-(-count // sequence), most, seed)
    return [i for unit in units for i in range(unit * sequence, min(count, (unit + 1) * sequence))]


def _find_output(graph: Graph, data_set: DataSet, data: Data) -> tuple[int | None, str]:
    """Returns the position of the output that gives the class, and ""; or None and the reason why no accuracy
    can be computed.
    """
    if not data_set.labels:
        if data.scores:
            text = "it has no effect without labels"
            raise UsageError(text, option="scores", hint=suggest(scores=None))
        return None, "the data set has no labels"
    tensor, why = scores(graph, data.scores)
    if tensor is None:
        return None, why
    path = (data.wanted.labels or data.wanted.file).path
    check_labels(data_set.labels, data_set.classes, graph.tensors[tensor], path)
    return graph.outputs.index(tensor), ""


def _run_firmware(request: Validate, data: Data, job: _Job) -> Share:
    """Runs the firmware on some or all inputs, and the reference on all. Returns what decided how many the
    firmware runs on.
    """
    planned, sources = plan_and_sources(request, job.session)
    flags = sanitizer_flags(request, planned.target.board)
    job.judge.set_network(planned.model, planned.source, planned.graph, every=False, hop=planned.hop)
    job.planned, job.graph, attached = planned, planned.graph, request.attached
    with image_of(request, planned, sources, flags) as firmware:
        each = _estimate_work(planned, attached)
        if data.through is None and each and len(job.chosen) * each.seconds > SHORT_SECONDS:
            job.session.tell("counting the instructions of an input")
            each = _count_work(planned, firmware, job.read(0), each) if attached is None else each
        count = min(data.through or through(len(job.chosen), each), len(job.chosen))
        positions = choose_sequences(len(job.chosen), count, data.wanted.seed, job.sequence)
        seconds = each.seconds if each else 0.0
        progress = _Progress(job.session, _Pace(len(positions), seconds), _Pace(len(job.chosen)))
        for part in _split_starts(positions, planned.graph, seconds, job.sequence):
            inputs, began = [job.read(at) for at in part], time.monotonic()
            progress.running("firmware", began, 0)
            outcome = execute(
                planned,
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
    job.refer(sorted(set(range(len(job.chosen))) - set(positions)), progress)
    job.bounds = bounds_of(
        planned, sources, [job.read(at) for at in positions[:BOUNDED]], request.attached, flags
    )
    return _describe_share("estimate" if data.through is None else "asked", len(job.chosen), each)


def _split_starts(
    positions: Sequence[int], graph: Graph, seconds: float, sequence: int
) -> Iterator[list[int]]:
    """Yields the positions in lists of whole sequences. The firmware is started once for each list.

    If possible, a list takes at most RUN_SECONDS, and has at most MOST_INPUTS inputs and MOST_BYTES bytes.
    `seconds` is the estimated time for one input.
    """
    size = sum(graph.tensors[t].size for t in (*graph.inputs, *graph.outputs))
    most = min(MOST_INPUTS, max(1, MOST_BYTES // max(size, 1)))
    if seconds:
        most = max(1, min(most, int(RUN_SECONDS / seconds)))
    most = max(sequence, most // sequence * sequence)
    for start in range(0, len(positions), most):
        yield list(positions[start : start + most])


# ---- the answer ----------------------------------------------------------------------------------------


def _make_answer(
    request: Validate, data: Data, model: str, job: _Job, share: Share, no_accuracy: str
) -> DatasetAnswer:
    data_set, graph, planned = job.data, job.graph, job.planned
    board = planned.target.board if planned else load_board(request.target.board)
    measured = None
    if job.output is not None:
        # of a recording, the outputs after its last hop count
        last = [at for at in range(len(job.chosen)) if _hop_of(request) is None or job.is_last(at)]
        labels = [data_set.labels[job.chosen[at]] for at in last]
        by_reference = [job.by_reference[at] for at in last]
        tensor = graph.tensors[graph.outputs[job.output]]
        ran = {place: job.by_firmware[at] for place, at in enumerate(last) if at in job.by_firmware}
        measured = accuracy(tensor, labels, data_set.classes, by_reference, ran)
    exact = not job.differences if planned else None
    return {
        "model": model,
        "board": board.name,
        "data": Path(data.wanted.file.path).name,
        "inputs": len(job.chosen),
        "inputs_there": len(data_set.names),
        "seed": data.wanted.seed if len(job.chosen) < len(data_set.names) else None,
        "fed": [
            {"name": graph.tensors[t].name, "shape": shape(graph.tensors[t].shape), "how": how}
            for t, how in zip(graph.inputs, data_set.how, strict=True)
        ],
        "reference": job.judge.answer(),
        "requantise": str(planned.target.requantise if planned else request.target.requantise),
        "share": share,
        "firmware": _sum_runs(planned, job) if planned else None,
        "exact": exact,
        "within_bounds": keeps_bounds(job.bounds) if planned and is_rounded(planned) else exact,
        "bounds": job.bounds,
        "differing": [
            _describe_difference(job, one) for one in sorted(job.differences, key=lambda d: d.input_set)
        ],
        "accuracy": measured,
        "no_accuracy": no_accuracy,
        "note": board.note,
    }


def _describe_difference(job: _Job, one: Difference) -> DifferingInput:
    index = job.chosen[one.input_set]  # in the data set
    return {
        "index": index,
        "name": job.data.names[index],
        "tensor": one.name,
        "operator": one.operator,
        "elements": one.elements,
        "max_abs_diff": one.max_abs,
        "first_element": one.first,
    }


def _sum_runs(planned: Planned, job: _Job) -> ThroughFirmware:
    """Returns the figures of all runs of the firmware together, as part of the answer."""
    outcomes, differences = job.outcomes, job.differences
    stacks = [one.stack_high_water for one in outcomes]
    return {
        **reality_answer(outcomes[0].reality),
        "compiler": outcomes[0].compiler,
        "strategy": planned.plan.strategy,
        "inputs": job.inputs_run,
        "inputs_equal": job.inputs_run - len({one.input_set for one in differences}),
        "elements_different": sum(one.elements for one in differences),
        "max_abs_diff": max((one.max_abs for one in differences), default=0),
        "output_values": sum(map(len, job.values)),
        "arena_bytes": planned.plan.arena_bytes,
        "state_bytes": planned.plan.state_bytes,
        "arena_high_water": max(one.arena_high_water for one in outcomes),
        "stack_high_water": None if None in stacks else max(stack or 0 for stack in stacks),
    }
