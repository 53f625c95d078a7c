"""Runs a network's test firmware on inputs, and reads its outputs and its report.

The firmware is built here, or it is the linked firmware image of a build. A trace build also writes every
tensor: a record (tensor, offset, bytes) for each part of a tensor when the part is computed.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from buildtool.api.requests.kinds import Debug, Flash, Profile, Validate
from buildtool.api.requests.parts import AttachedRun
from buildtool.base.errors import Hint, ToolError, UsageError, suggest
from buildtool.base.files import File
from buildtool.base.locks import scratch
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware.firmware import Firmware, build_firmware
from buildtool.firmware.levels import reality
from buildtool.firmware.planned import Planned, plan_or_read, read_plan, refuse_unless_fits
from buildtool.firmware.run.attached import run_attached
from buildtool.firmware.run.compare import Array
from buildtool.firmware.run.identity import MOST_IMAGE_BYTES, check_image
from buildtool.firmware.stack.need import refuse_unless_enough
from buildtool.firmware.tools import toolchain
from buildtool.graph.types import Graph
from buildtool.target.choice import answers_by_files, link_of
from buildtool.target.plugin import Harness, ProgramError
from buildtool.target.registry import ask_plugin
from buildtool.target.registry import plugin as find_plugin
from buildtool.target.types import Reality, RunRequest, RunResult

TIMEOUT = 600.0  # seconds, for all inputs of one run


@dataclass(frozen=True)
class Outcome:
    """The results of a run of the test firmware.

    `outputs`, `traces`: for each set of inputs, the raw bytes of tensors by index; `traces` has those of a
    trace build.
    `computed`: the number of bytes of each traced tensor that one invoke computes, repetitions included.
    `partial`: for each traced tensor that is not computed as a whole, a 1 for every computed byte.
    `arena_high_water`, `stack_high_water`: bytes that were used; None if they cannot be measured.
    `reality`: what the firmware ran on.
    `counted`: counts of instructions, cycles and issue slots (instructions of an XS3 core).
    """

    outputs: list[dict[int, bytes]]
    traces: list[dict[int, bytes]]
    computed: dict[int, int]
    partial: dict[int, bytes]
    arena_high_water: int
    stack_high_water: int | None
    compiler: str
    reality: Reality
    counted: RunResult

    def tensors(self, number: int) -> dict[int, bytes]:
        """Returns the raw bytes of the outputs for the set of inputs `number`, and in a trace build of every
        other tensor.
        """
        return {**(self.traces[number] if self.traces else {}), **self.outputs[number]}


def plan_and_sources(
    request: Validate | Profile | Debug | Flash, session: Session
) -> tuple[Planned, Sources]:
    """Returns the planned model and its emitted sources. The plan is a new one, a given one, or that of the
    given image.
    """
    if request.made is not None:
        planned = read_plan(request.model, request.target, request.made.plan, session)
    else:
        planned = plan_or_read(request.model, request.target, request.options, request.lock, session)
    sources = emit(planned.graph, planned.plan, planned.target, planned.model.name, session)
    refuse_unless_fits(planned, len(sources.image.data))
    return planned, sources


@contextmanager
def image_of(
    request: Validate | Profile | Debug,
    planned: Planned,
    sources: Sources,
    flags: Sequence[str] = (),
    *,
    emulated: bool = True,
) -> Iterator[Firmware]:
    """Yields the request's firmware image, or builds one; see `build_temporarily` for `emulated`."""
    if request.made is None:
        with build_temporarily(planned, sources, flags, emulated=emulated) as firmware:
            yield firmware
        return
    if emulated:
        refuse_stand_in(planned, request.made.elf.path)
    with open_image(planned, sources, request.made.elf) as firmware:
        yield firmware


def refuse_stand_in(planned: Planned, path: str) -> None:
    """Raises ToolError if the board's emulator is another machine, which cannot run the board's own firmware
    image.
    """
    board = planned.target.board
    if board.is_stand_in and not link_of(planned.choice, board):
        raise ToolError(
            f"the emulator of board '{board.name}' has other addresses and cannot run the board's firmware",
            path=path,
            hint=[suggest("on an attached board", on="board"), Hint("or give no image: one is built here")],
        )


@contextmanager
def open_image(planned: Planned, sources: Sources, elf: File) -> Iterator[Firmware]:
    """Yields the firmware image `elf`; raises ToolError if it was not built for this network and this
    plan.
    """
    data, board = elf.read("the image", MOST_IMAGE_BYTES), planned.target.board
    over_wire = not answers_by_files(planned.choice, board)
    linked = check_image(data, planned.plan, sources.image, elf.path, over_wire=over_wire)
    if elf.data is None:
        yield Firmware(Path(elf.path), linked.compiler)
        return
    with scratch() as name:
        path = Path(name) / f"{sources.net}.elf"
        path.write_bytes(data)
        path.chmod(0o755)
        yield Firmware(path, linked.compiler)


@contextmanager
def build_temporarily(
    planned: Planned,
    sources: Sources,
    flags: Sequence[str] = (),
    *,
    trace: bool = False,
    harness: Harness | None = None,
    emulated: bool = False,
) -> Iterator[Firmware]:
    """A context with test firmware, which is built at the start and removed at the end.

    - `flags`: further flags for compiler and linker, such as those of sanitizers.
    - `trace`: whether the firmware writes every tensor when it is computed.
    - `harness`: C files that replace those of the plugin's harness (None: the plugin's).
    - `emulated`: whether the firmware is for the emulator's machine, which may differ from the board.

    With `flags` or `harness`, the firmware is compiled as a program of this machine if the board has a
    toolchain for that.
    """
    board, target = planned.target.board, planned.target
    if emulated and not link_of(planned.choice, board):
        target = replace(target, board=board.in_emulator())
    with scratch() as name:
        folder = Path(name)
        tools = toolchain(planned.choice, target, native=bool(flags) or harness is not None)
        extra = [*flags, *(["-DNN_TRACE"] if trace else [])]
        tell = planned.session.tell
        firmware = build_firmware(sources, planned.plan, target, tools, folder, extra, tell, harness)
        if not planned.choice.debug and not extra:
            refuse_unless_enough(firmware.elf.read_bytes(), target.board, sources.net)
        yield firmware


def execute(
    planned: Planned,
    firmware: Firmware,
    inputs: Sequence[Sequence[Array]],
    *,
    trace: bool = False,
    count: bool = False,
    blocks: bool = False,
    attached: AttachedRun | None = None,
    resets: Sequence[bool] | None = None,
    timeout: float = TIMEOUT,
    ran: Callable[[int], None] | None = None,
) -> Outcome:
    """Runs the test firmware on every set of inputs.

    `trace`: whether the firmware was built to write all its tensors.
    `count`: count each operator's instructions; with `blocks` also how often each block of code runs.
    `attached`: run over a link, on an attached board or its emulator. There cycles are counted, not
    instructions.
    `resets`: for each set of inputs, whether the state is reset before it (None: before each).
    `timeout`: the limit for all inputs, in seconds.
    `ran`: is called with the number of finished inputs; without it, the session reports the progress.
    """
    graph, board = planned.graph, planned.target.board
    each = max(1, sum(graph.tensors[t].size for t in graph.outputs))
    where = f"on {board.name}{', every tensor' if trace else ''}{', counting' if count else ''}"

    def tell(count: int) -> None:
        planned.session.tell(f"running input {min(count + 1, len(inputs))} of {len(inputs)} {where}")

    report = ran or tell
    request = RunRequest(
        {"input.bin": input_file(graph, inputs, resets)},
        ("output.bin", "report.txt", *(("trace.bin",) if trace else ())),
        timeout=timeout,
        count=count and attached is None,
        blocks=count and blocks and attached is None,
        written=lambda size: report(min(size // each, len(inputs))),
    )
    result = _run(planned, firmware.elf, request, attached)
    return read_outcome(graph, result, len(inputs), firmware.compiler, result.reality or reality(board))


def _run(planned: Planned, elf: Path, request: RunRequest, attached: AttachedRun | None) -> RunResult:
    """Runs firmware over a link if `attached` is given, otherwise with the board's plugin.

    An error of the firmware names the operator that was being computed.
    """
    board = planned.target.board
    if attached is not None and attached.is_emulated and board.is_stand_in:
        text = f"the emulator of board '{board.name}' is another machine, without the board's ports"
        raise UsageError(text, option="wire", hint=suggest(wire=None))
    try:
        if attached is not None:
            return run_attached(planned, elf, request, attached)
        plugin = find_plugin(board)
        result: RunResult = ask_plugin(
            board.family, "run", lambda: plugin.run(board, elf, request), RunResult
        )
    except ProgramError as error:
        raise _name_operator(error, planned) from None
    missing = [file for file in request.outputs if file not in result.files]
    if missing:
        raise ToolError(f"the target plugin '{board.family}': run returns no file '{missing[0]}'")
    return result


def input_file(
    graph: Graph, inputs: Sequence[Sequence[Array]], resets: Sequence[bool] | None = None
) -> bytes:
    """Returns the content of the test firmware's input.bin: the sets of inputs, one after another.

    For a network with state, four bytes before each set say whether the state is reset; `resets` is that of
    `execute`.
    """
    raw = [b"".join(np.ascontiguousarray(array).tobytes() for array in one) for one in inputs]
    if not graph.states:
        return b"".join(raw)
    heads = [reset.to_bytes(4, "little") for reset in resets or [True] * len(raw)]
    return b"".join(head + one for head, one in zip(heads, raw, strict=True))


def _name_operator(error: ProgramError, planned: Planned) -> ToolError:
    """Returns the error for a failed run, with the operator that was being computed and its kernel."""
    stack = planned.target.board.stack_bytes
    hint = f"the board's file reserves {stack:,} bytes of stack" if "stack overflow" in error.text else ""
    if error.running is None or error.running >= len(planned.graph.ops):
        return ToolError(error.text, path=error.path, hint=hint or error.hints)
    op, kernel = planned.graph.ops[error.running], planned.plan.kernels[error.running]
    text = f"{error.text}\n    while kernel '{kernel}' computed {op.kind}"
    return ToolError(text, path=error.path, operator=op.place, hint=hint or error.hints)


def read_outcome(graph: Graph, result: RunResult, sets: int, compiler: str, runs_on: Reality) -> Outcome:
    """Returns the outcome of a run, read from the files that the test firmware wrote.

    `sets` is the number of sets of inputs. `runs_on` is what the firmware ran on. Raises ToolError if a file
    is damaged, or the network wrote outside its arena.
    """
    report = _read_report(result.files["report.txt"].decode("ascii", "replace"))
    if report.get("sets") != sets:
        raise ToolError(f"the firmware ran {report.get('sets')} of {sets} inputs:\n{result.text[-2000:]}")
    if not report.get("guard_ok"):
        raise ToolError(
            "the network wrote outside its arena", hint="this is an error in buildtool: please report it"
        )
    return Outcome(
        _read_outputs(graph, result.files["output.bin"], sets),
        *_read_traces(result.files.get("trace.bin", b""), sets, graph),
        report["arena_high_water"],
        report.get("stack_high_water") or None,
        compiler,
        runs_on,
        replace(result, files={}),
    )


def _read_report(text: str) -> dict[str, int]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    try:
        numbers = {name: int(value) for name, _, value in pairs}
    except ValueError:
        raise _make_damage_error("report") from None
    if numbers.get("sets") and not {"arena_high_water", "guard_ok"} <= numbers.keys():
        raise _make_damage_error("report")
    return numbers


def _make_damage_error(file: str) -> ToolError:
    hint = "check that the folder for temporary files (TMPDIR) is not full"
    return ToolError(f"the firmware's {file} is cut off or damaged", hint=hint)


def _read_outputs(graph: Graph, data: bytes, sets: int) -> list[dict[int, bytes]]:
    expected = sets * sum(graph.tensors[t].size for t in graph.outputs)
    if expected != len(data):
        raise ToolError(f"the firmware wrote {len(data)} bytes of output, {expected} were expected")
    stream = io.BytesIO(data)
    return [{t: stream.read(graph.tensors[t].size) for t in graph.outputs} for _ in range(sets)]


Record = tuple[int, int, bytes]  # tensor, offset in it, data


def _read_records(data: bytes) -> Iterator[Record]:
    place = 0
    while place < len(data):
        start = place + 12
        tensor, offset, size = struct.unpack("<III", data[place:start]) if start <= len(data) else (0, 0, 0)
        place = start + size
        if place > len(data):
            raise _make_damage_error("trace")
        yield tensor, offset, data[start:place]


def _read_traces(
    data: bytes, sets: int, graph: Graph
) -> tuple[list[dict[int, bytes]], dict[int, int], dict[int, bytes]]:
    """Returns each set's traced tensors, the number of computed bytes of each tensor, and masks.

    There is a mask for each tensor that is not computed as a whole: a 1 for every computed byte. The number
    of computed bytes is that of one set of inputs, repetitions included. Raises ToolError if the sets of
    inputs computed different parts, or if a part that was computed again has other values.
    """
    records = list(_read_records(data))
    each, rest = divmod(len(records), sets)
    if rest or any(t >= len(graph.tensors) for t, _, _ in records):
        text = f"the trace is incomplete or damaged: it has {len(records)} records for {sets} inputs"
        raise ToolError(text)
    tensors = [_join_records(records[i * each : (i + 1) * each], graph) for i in range(sets)]
    if any(masks != tensors[0][1] for _, masks in tensors):
        raise ToolError("the invokes computed different parts of the tensors")
    computed = Counter[int]()
    for tensor, _, part in records[:each]:
        computed[tensor] += len(part)
    return [values for values, _ in tensors] if data else [], dict(computed), tensors[0][1]


def _join_records(records: Sequence[Record], graph: Graph) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Returns the tensors, joined from the records of their parts, and masks of the computed bytes.

    There is a mask for each tensor that is not computed as a whole. A plan that computes row by row writes
    some hundred thousand parts of a few bytes each, so this does not use NumPy arrays.
    """
    values: dict[int, bytearray] = {}
    masks: dict[int, bytearray] = {}  # 1 where a byte was computed
    for t, offset, part in records:
        if t not in values:
            values[t], masks[t] = bytearray(graph.tensors[t].size), bytearray(graph.tensors[t].size)
        value, mask, end = values[t], masks[t], offset + len(part)
        if end > len(value):
            raise ToolError("a traced part lies outside its tensor", tensor=graph.tensors[t].name)
        if 1 in mask[offset:end] and value[offset:end] != part:
            pairs = zip(value[offset:end], mask[offset:end], part, strict=True)
            if any(old != new for old, is_computed, new in pairs if is_computed):
                text = "a part that was computed twice has different values"
                raise ToolError(text, tensor=graph.tensors[t].name)
        value[offset:end] = part
        mask[offset:end] = b"\1" * len(part)
    partial = {t: bytes(mask) for t, mask in masks.items() if 0 in mask}
    return {t: bytes(value) for t, value in values.items()}, partial
