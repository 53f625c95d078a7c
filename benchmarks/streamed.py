"""Prints what streaming costs: benchmarks/streamed.py [--worst N | --predicted] [NETWORK]...

A hand-off is how many pixels one operator computes before the next one runs. For each hand-off (1, 4, 8
pixels, whole rows) the plan with the least RAM and at most F times the work (1.0; --board B and --max-f F may
be repeated), with a streamed image, is compared with the plan layer by layer: built, run in QEMU, its output
compared with the executor's, its executed instructions counted by layer and by function, and its cost
compared with the count. A second table has the layers that grew most, and a sentence at the end how much wide
hand-offs take at most. --predicted prints one table for all boards instead, of costs against counts. Nothing
is written.

The instructions that streaming adds, in per cent of layer by layer, are in these parts:

- loops: the emitted code, and the delivery of the image's rows
- set-up: the kernels' entry functions, which begin each call and each run of pixels
- scratch: functions that bring inputs into scratch, and copies
- arithmetic: the rest: sums and outputs, which narrow runs of pixels compute in smaller tiles
"""

from __future__ import annotations

import argparse
import bisect
import io
import itertools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from buildtool_plugins.qemu import counting, runner
from buildtool_plugins.tools.find import find_host_compiler
from buildtool_plugins.tools.sandbox import run_program
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from instructions import in_instructions

from buildtool.emit.sources import Sources, emit
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.firmware import build_firmware
from buildtool.firmware.levels import reality
from buildtool.firmware.planned import Planned, plan_model
from buildtool.firmware.run.compare import difference, referrer
from buildtool.firmware.run.execute import read_outcome
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Plan
from buildtool.target.registry import plugin as find_plugin
from buildtool.target.types import RunRequest, RunResult

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
NETWORKS = ("mobilenetv2_160", "mcunet_320k_imagenet")
BOARDS = ("cortex-m4", "cortex-m55")  # by default
MORE_BOARDS = ("qemu-virt-rv32", "qemu-virt-rv32v", "qemu-virt-rv32v256")
ROW = 1 << 16  # pixels: wider than any row, so whole rows are all there is
HAND_OFFS = {"1": 1, "4": 4, "8": 8, "row": ROW}
WIDE = ("8", "row")
PARTS = ("loops", "set-up", "scratch", "arithmetic")
SCRATCH = re.compile(r"(nn_)?(dsp_|mve_)?(fill|widen|gather|spread|take_rests|copy)|.*mem(cpy|set|move)")
ALL_CHANNELS = PlanOptions(simplify="structure")  # as in the networks that others measured
LAYERWISE = replace(ALL_CHANNELS, strategy="layerwise")
ADDRESSES = Path(__file__).resolve().parent / "addresses.c"
ADDRESSES_SEEN = 1 << 21  # bytes; the plugin gives addresses modulo this


@dataclass(frozen=True)
class Counted:
    """The counts of one run: instructions by operator and by part of the firmware, calls by operator.

    `predicted` is the plan's cost in instructions.
    """

    plan: Plan
    predicted: float
    graph: Graph
    total: int
    by_operator: Mapping[int, int]
    by_part: Mapping[str, int]
    calls: Mapping[int, int]
    compiler: str


def count(model: str, board: str, how: PlanOptions, folder: Path) -> Counted:
    """Plans, builds and runs once with both counting plugins of QEMU. Exits if the output is not exact."""
    made = plan_model(model, board, how)
    sources = emit(made.graph, made.plan, made.target, made.model.name)
    plugin = find_plugin(made.target.board)
    work = Path(tempfile.mkdtemp(dir=folder))
    tools = plugin.toolchain(made.target.board, "")
    firmware = build_firmware(sources, made.plan, made.target, tools, work)
    inputs = draw_inputs(made.graph, 1, 0)
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in inputs[0])
    request = RunRequest({"input.bin": data}, ("output.bin", "report.txt"), timeout=600)
    files, text = _run(made, firmware.elf, request, folder)
    by_operator, total = counting.parse_counts(files.pop(counting.OUTPUT))
    addresses = files.pop("addresses.txt")
    result = RunResult(files, text, by_operator, total)
    outcome = read_outcome(made.graph, result, 1, firmware.compiler, reality(made.target.board))
    expected = referrer("numpy", made.model.data, made.source, made.graph)(inputs[0], False)
    if difference(made.graph, 0, outcome.outputs[0], expected):
        raise SystemExit(f"{model} on {board} differs from the executor")
    by_part = _parts(_functions(firmware.elf, addresses), made, sources)
    calls = Counter(Timeline.of(made.graph, made.plan.regions, made.plan.image).steps[:, 0].tolist())
    predicted = in_instructions(made.plan, made.graph, made.target.board)
    return Counted(made.plan, predicted, made.graph, total, by_operator, by_part, calls, firmware.compiler)


def _run(made: Planned, elf: Path, request: RunRequest, folder: Path) -> tuple[dict[str, bytes], str]:
    line = runner.command(made.target.board, elf)
    plugins = (counting.counting_plugin(), _address_plugin(folder))
    isa = "riscv" if "riscv" in line[0] else "arm"
    loaded = [
        *("-plugin", f"./{plugins[0].name},isa={isa},out={counting.OUTPUT}"),
        *("-plugin", f"./{plugins[1].name},isa={isa},out=addresses.txt"),
    ]
    outputs = replace(request, outputs=(*request.outputs, counting.OUTPUT, "addresses.txt"))
    return run_program([line[0], *loaded, *line[1:]], outputs, what="the firmware", links=plugins)


def _address_plugin(folder: Path) -> Path:
    built = folder / "addresses.so"
    if not built.is_file():
        command = [find_host_compiler(), *counting.FLAGS, str(ADDRESSES), "-o", str(built)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return built


def _functions(elf: Path, addresses: bytes) -> Counter[str]:
    """Returns the executed instructions of each function."""
    table = ELFFile(io.BytesIO(elf.read_bytes())).get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    named = sorted(
        (symbol["st_value"] % ADDRESSES_SEEN & ~1, symbol.name)
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC"
    )
    starts = [address for address, _ in named]
    found: Counter[str] = Counter()
    for line in addresses.splitlines():
        address, times = map(int, line.split())
        found[named[bisect.bisect_right(starts, address) - 1][1]] += times
    return found


def _parts(functions: Counter[str], made: Planned, sources: Sources) -> dict[str, int]:
    kernels = {kernel.symbol for kernel in made.target.kernels}
    parts = dict.fromkeys(PARTS, 0)
    for name, instructions in functions.items():
        if name.startswith((f"{sources.net}_", "deliver", "io_", "semihosting")):
            part = "loops"
        elif name in kernels:
            part = "set-up"
        else:
            part = "scratch" if SCRATCH.match(name) else "arithmetic"
        parts[part] += instructions
    return parts


def options(pixels: int, max_f: float = 1.0) -> PlanOptions:
    """Returns options for plans with hand-offs of at least `pixels` pixels, and F up to `max_f`."""
    return replace(ALL_CHANNELS, image="stream", objective="ram", max_f=max_f, hand_off=pixels)


def _predicted(found: Counted) -> str:
    """Returns the relative error of the plan's predicted instructions, as text."""
    return f"{100 * (found.predicted / found.total - 1):+.2f} %"


def _more(now: int, before: int, whole: int) -> str:
    return f"{100 * (now - before) / whole:+.2f} %"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _summary(name: str, found: Counted, whole: Counted) -> str:
    parts = [_more(found.by_part[part], whole.by_part[part], whole.total) for part in PARTS]
    counts = [f"{found.plan.arena_bytes:,}", f"{found.plan.f:.2f}", _predicted(found), f"{found.total:,}"]
    return _row([name, *counts, _more(found.total, whole.total, whole.total), *parts])


def summary(counted: Mapping[str, Counted], whole: Counted) -> Iterator[str]:
    """Yields the table with a row for each hand-off."""
    heading = ("hand-off", "arena", "F", "predicted", "instructions", "more", *PARTS)
    yield _row(heading)
    yield "| --- |" + " ---: |" * (len(heading) - 1)
    counts = [f"{whole.plan.arena_bytes:,}", "1.00", _predicted(whole), f"{whole.total:,}"]
    yield _row(["layer by layer", *counts, *[""] * 5])
    for name, found in counted.items():
        yield _summary(name, found, whole)


def worst(counted: Mapping[str, Counted], whole: Counted, most: int) -> Iterator[str]:
    """Yields the table of the layers whose instructions grew most, for each hand-off."""
    heading = (
        "hand-off",
        "layer",
        "kernel",
        "output",
        "calls",
        "layer by layer",
        "streamed",
        "more",
        "per call",
    )
    yield _row(heading)
    yield "| --- | --- | --- | --- |" + " ---: |" * (len(heading) - 4)
    for name, found in counted.items():
        grown = {p: n - whole.by_operator[p] for p, n in found.by_operator.items()}
        for p in sorted(grown, key=lambda p: -grown[p])[:most]:
            height, width, channels = found.graph.tensors[found.graph.ops[p].outputs[0]].nhwc[1:]
            before, now, calls = whole.by_operator[p], found.by_operator[p], found.calls[p]
            cells = [
                name,
                f"#{p} {found.graph.ops[p].kind}",
                found.plan.kernels[p],
                f"{height}x{width}x{channels}",
            ]
            counts = [f"{calls:,}", f"{before:,}", f"{now:,}", _more(now, before, before)]
            yield _row([*cells, *counts, f"{grown[p] / calls:,.0f}"])


@dataclass(frozen=True)
class Streamed:
    """The counts for a network on a board, layer by layer and streamed with each hand-off.

    `max_f` is the limit on F for streamed plans.
    """

    model: str
    board: str
    max_f: float
    whole: Counted
    counted: Mapping[str, Counted]


def measure(model: str, board: str, max_f: float) -> Streamed:
    """Builds and runs the layer-by-layer plan and all streamed plans."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = count(model, board, LAYERWISE, folder)
        counted = {name: count(model, board, options(n, max_f), folder) for name, n in HAND_OFFS.items()}
    return Streamed(Path(model).stem, board, max_f, whole, counted)


def tables(found: Streamed, most: int) -> Iterator[str]:
    """Yields both tables for a network on a board."""
    yield f"`{found.model}` on `{found.board}` ({found.whole.compiler}):"
    yield ""
    yield from summary(found.counted, found.whole)
    if most:
        yield ""
        yield from worst(found.counted, found.whole, most)
    yield ""


def at_most(measured: Sequence[Streamed]) -> str:
    """Returns by how much wide hand-offs increase the instructions at most, compared with layer by layer."""
    most = max(one.counted[name].total / one.whole.total - 1 for one in measured for name in WIDE)
    return f"Eight pixels or whole rows: at most {100 * most:.1f} % more instructions than layer by layer."


def predicted(measured: Iterable[Streamed], boards: Sequence[str]) -> Iterator[str]:
    """Yields a row for each network, limit and hand-off: errors of predicted costs on all boards."""
    yield _row(["network", "F at most", "hand-off", *boards])
    yield "| --- | ---: | ---: |" + " ---: |" * len(boards)
    rows: dict[tuple[str, float, str], list[str]] = {}
    for one in measured:
        for name, found in one.counted.items():
            error = f"{100 * (found.predicted / found.total - 1):+.1f} %"
            cells = rows.setdefault((one.model, one.max_f, name), [])
            cells.append(error)
            if len(cells) == len(boards):
                yield _row([f"`{one.model}`", f"{one.max_f:.2f}", name, *cells])


def main() -> None:
    """Prints the tables for the given networks, or for the two in ../shared/models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--board", action="append", choices=BOARDS + MORE_BOARDS)
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="layers in the second table")
    parser.add_argument("--predicted", action="store_true", help="one table of costs against counts")
    parser.add_argument("--max-f", action="append", type=float, metavar="F", help="default: 1.0")
    given = parser.parse_args()
    models = given.networks or [str(MODELS / f"{name}.tflite") for name in NETWORKS]
    boards, limits = given.board or BOARDS, given.max_f or [1.0]
    if given.predicted:
        by_limit = (measure(model, board, f) for model in models for f in limits for board in boards)
        for line in predicted(by_limit, boards):
            print(line, flush=True)
        return
    measured = []
    for model, board, f in itertools.product(models, boards, limits):
        measured.append(measure(model, board, f))
        print(*tables(measured[-1], given.worst), sep="\n", flush=True)
    print(at_most(measured))


if __name__ == "__main__":
    main()
