"""The emulator records every load and store of the families' kernels: all lie in the call's own memory.

Inputs are whole tensors, ring buffers of rows, windows of columns and channels of wider tensors. Outputs lie
in such places, too, and over inputs. A load after a tensor's end gives a right result as long as memory is
there; only these tests find it.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from boardcalls import BOARDS, collect, record, recording, trouble_of
from buildtool_plugins.qemu import counting, runner
from buildtool_plugins.tools.sandbox import run_program
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from kernelboard import DRIVER, Address, Call, Done, Firmware, Memory, results_of
from kernelcases import BYTES, activation_tensor, case, constant, means, pairs, unary
from loaded import load_target
from placement import run_pieces, run_whole
from recurrentnets import drawn_lstm, drawn_svdf, inputs_for_steps
from test_emulated_families import LINES, STRATEGIES
from wholecalls import WholeCall, whole_call
from widecases import conv, depthwise, pool, softmax, transposed

from buildtool.graph.strided import MAX_RANK, copies
from buildtool.graph.types import Attrs, AxisAttrs, OpKind, PadAttrs, SliceAttrs, WidenedAttrs
from buildtool.target.catalogue import select
from buildtool.target.registry import load_board
from buildtool.target.types import RunRequest
from buildtool.zoo.drawn import WideNetBuilder

SOURCE = DRIVER.with_name("accesses.c")
Range = tuple[int, int]


@dataclass
class Touched:
    """The loads and stores of one call: [first, end) in its memory, and addresses outside of it."""

    loads: list[Range] = field(default_factory=list)
    stores: list[Range] = field(default_factory=list)
    outside_loads: list[Range] = field(default_factory=list)
    outside_stores: list[Range] = field(default_factory=list)


@dataclass(frozen=True)
class Image:
    """The addresses of a firmware image's parts."""

    memory: Range  # the driver's copy of a call's memory
    arguments: Range  # the arguments, which the driver loads between the markers
    constant: tuple[Range, ...]  # read-only sections
    variable: tuple[Range, ...]


@functools.cache
def image_of(path: Path) -> Image:
    """Reads the addresses from an ELF file."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        places = {
            name: (symbol["st_value"], symbol["st_value"] + symbol["st_size"])
            for name in ("memory", "argument")
            for symbol in table.get_symbol_by_name(name)
        }
        sections = [s for s in elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_ALLOC and s["sh_size"]]
        sections = [s for s in sections if "stack" not in s.name]
        parts: tuple[list[Range], list[Range]] = ([], [])
        for section in sections:
            writable = bool(section["sh_flags"] & SH_FLAGS.SHF_WRITE)
            parts[writable].append((section["sh_addr"], section["sh_addr"] + section["sh_size"]))
    return Image(places["memory"], places["argument"], tuple(parts[False]), tuple(parts[True]))


def traced(firmware: Firmware, calls: Sequence[Call]) -> tuple[list[Done], list[Touched]]:
    """Runs the calls; returns the memory after each call, and its loads and stores."""
    board, elf = load_board(firmware.board), firmware.image()
    image = image_of(elf)
    blocks, cases = firmware.cases(calls)
    request = RunRequest({"cases.bin": cases}, ("results.bin", counting.OUTPUT), timeout=600.0, count=True)
    plugin = counting.counting_plugin(SOURCE)
    watched = f"memory={image.memory[0]}:{image.memory[1] - image.memory[0]}"
    line = runner.with_plugin(runner.command(board, elf), plugin, [watched])
    files, _ = run_program(line, request, what="the traced calls", links=(plugin,))
    accesses = _parsed(files[counting.OUTPUT].decode("ascii"))
    assert len(accesses) == sum(call.repeats for call in calls)
    return results_of(files["results.bin"], blocks), accesses


def _parsed(text: str) -> list[Touched]:
    accesses: list[Touched] = []
    for line in text.splitlines():
        *what, first, end = line.split(" ") if line != "call" else ("call", "", "")
        if what == ["call"]:
            accesses.append(Touched())
            continue
        getattr(accesses[-1], "_".join(what) + "s").append((int(first), int(end)))
    return accesses


def unseen(accesses: Touched, done: Done) -> int:
    """Counts bytes that the call changed without a recorded store; 0 unless the emulator misses stores."""
    stores = _joined(accesses.stores)
    return sum(not any(first <= int(at) < end for first, end in stores) for at in done.changed())


def strange(
    accesses: Touched, loadable: Sequence[Range], writable: Sequence[Range], image: Image
) -> list[str]:
    """Describes forbidden accesses of a call; in its memory it may load `loadable` and store `writable`."""
    pieces = _joined(loadable)
    messages = [f"loads {r}" for r in _beyond(accesses.loads, pieces)]
    messages += [f"stores {r}" for r in _beyond(accesses.stores, _joined(writable))]
    stores = [
        r for r in accesses.outside_stores if any(_meet(r, s) for s in (*image.constant, *image.variable))
    ]
    loads = [r for r in accesses.outside_loads if any(_meet(r, s) for s in image.variable)]
    loads = [r for r in loads if not _within(r, image.arguments)]
    return messages + [f"stores at {r[0]:#x}" for r in stores] + [f"loads at {r[0]:#x}" for r in loads]


def _joined(ranges: Sequence[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, end in sorted(r for r in ranges if r[1] > r[0]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((first, end))
    return joined


def _beyond(ranges: Sequence[Range], allowed: Sequence[Range]) -> list[Range]:
    """Returns the ranges that do not lie in an allowed one."""
    return [r for r in ranges if not any(_within(r, a) for a in allowed)]


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _meet(a: Range, b: Range) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def check_accesses(recorder, board):
    """Runs all calls and records loads and stores; asserts that all are in the call's own data."""
    firmware = recorder.firmware("", board)
    calls = [r.call for r in recorder.recorded]
    results, accesses = traced(firmware, calls)
    image = image_of(firmware.image())
    wrong = []
    for r, result, touched in zip(recorder.recorded, results, accesses, strict=True):
        output = (r.place.offset, r.place.offset + len(r.wanted))
        words = [trouble] if (trouble := trouble_of(r, result)) else []
        words += strange(touched, r.call.memory.pieces, (output, r.scratch), image)
        words += ["stores without a record"] if unseen(touched, result) else []
        wrong += [f"{r.note}: {', '.join(words[:4])}"] if words else []
    assert not wrong, f"{len(wrong)} of {len(calls)} calls:\n" + "\n".join(wrong[:8])


pytestmark = pytest.mark.slow  # all tests: the emulator records every access
families = pytest.mark.parametrize("family", sorted(BOARDS))
WIDE_CONVOLUTIONS = (
    {"image": (5, 6, 4), "filters": 6, "kernel": (1, 1)},
    {"image": (7, 5, 3), "filters": 5, "kernel": (3, 3), "same": True},
    {"image": (6, 9, 6), "filters": 7, "kernel": (3, 2), "stride": (2, 2)},
    {"image": (5, 6, 8), "filters": 6, "kernel": (3, 2), "same": True, "groups": 2},
    {"image": (6, 7, 5), "filters": 0, "kernel": (3, 3), "same": True, "depth_multiplier": 1},
    {"image": (9, 5, 16), "filters": 0, "kernel": (1, 5), "stride": (2, 1), "depth_multiplier": 1},
    {"image": (4, 5, 3), "filters": 0, "kernel": (3, 3), "same": True, "depth_multiplier": 5},
)


def wide_graphs():
    """Yields int16 networks of one operator."""
    for seed, options in enumerate(WIDE_CONVOLUTIONS):
        net, rest = WideNetBuilder(seed), dict(options)
        x = net.input((1, *rest.pop("image")))
        yield net.graph([net.conv(x, rest.pop("filters"), **rest)])
    for seed, (inputs, outputs) in enumerate(((13, 7), (32, 5))):
        net = WideNetBuilder(seed)
        yield net.graph([net.dense(net.input((2, inputs)), outputs)])
    net = WideNetBuilder(1)
    yield net.graph([net.transpose_conv(net.input((1, 3, 4, 5)), 7, kernel=(3, 2), stride=(2, 3), same=True)])
    for kind in (OpKind.ADD, OpKind.MUL):
        for shapes in (((1, 3, 2, 13),) * 2, ((1, 1, 1, 13), (1, 3, 2, 13)), ((1, 3, 2, 5), (1, 3, 2, 1))):
            net = WideNetBuilder(len(shapes))
            yield net.graph([net.elementwise(kind, *map(net.input, shapes))])
    for kind, (window, channels) in itertools.product(
        (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D), (((3, 2), 11), ((2, 2), 6), ((2, 3), 1))
    ):
        net = WideNetBuilder(1)
        yield net.graph([net.pool(kind, net.input((1, 5, 4, channels)), window, (2, 1), same=True)])


def mean_cases():
    cases = []
    collect(means(), 12, lambda case: cases.append((case.graph, list(case.inputs))))
    return cases


def recurrent_cases():
    drawn = [(make(seed), seed) for make in (drawn_svdf, drawn_lstm) for seed in range(6)]
    return [(graph, inputs_for_steps(graph, 1, seed)) for graph, seed in drawn]


def wide_cases():
    rng = np.random.default_rng(0)
    for graph in wide_graphs():
        shapes = [graph.tensors[t].shape for t in graph.inputs]
        yield graph, [rng.integers(-32768, 32768, shape).astype(np.int16) for shape in shapes]


def lacking_cases():
    """Yields additions of an operand that lacks channels below, above, or on both sides; some are no line."""
    for seed, (channels, narrow, before) in enumerate(((28, 24, 0), (5, 1, 2), (40, 1, 17), (33, 17, 16))):
        rng = np.random.default_rng(seed)
        x, y = (activation_tensor(n, (1, 3, 5, c), 0.5, 3) for n, c in (("x", channels), ("y", narrow)))
        filling = constant("filling", np.full(max(before, channels - narrow - before), 3, np.int8), y.quant)
        out = activation_tensor("out", x.shape, 0.01 if seed % 2 else 0.7, -5)
        values = [rng.integers(-128, 128, t.shape, dtype=np.int8) for t in (x, y)]
        made = case(OpKind.ADD, WidenedAttrs(before=before), [x, y], [filling], out, values)
        yield made.graph, values


# ---- copies of lines for SLICE and CONCATENATION; a call may access only the lines ------------------------
#
# Between the lines that a call reads, and between those that it writes, lies noise that it may not access.

# Channels: one vector, two vectors, vectors and words, words, odd counts; a row; a box; every second channel.
SLICES = (
    ((1, 2, 3, 48), (0, 0, 0, 16), (1, 2, 3, 16), (1, 1, 1, 1)),
    ((1, 2, 3, 48), (0, 0, 0, 4), (1, 2, 3, 32), (1, 1, 1, 1)),
    ((1, 2, 3, 40), (0, 0, 0, 8), (1, 2, 3, 28), (1, 1, 1, 1)),
    ((1, 2, 3, 16), (0, 0, 0, 4), (1, 2, 3, 12), (1, 1, 1, 1)),
    ((1, 2, 3, 23), (0, 0, 0, 3), (1, 2, 3, 19), (1, 1, 1, 1)),
    ((1, 4, 3, 12), (0, 1, 0, 0), (1, 2, 3, 12), (1, 1, 1, 1)),
    ((1, 4, 5, 12), (0, 1, 1, 4), (1, 2, 3, 8), (1, 1, 1, 1)),
    ((1, 1, 3, 10), (0, 0, 0, 1), (1, 1, 3, 4), (1, 1, 1, 2)),
)
JOINED = ((16, 32), (48, 20, 4), (7, 13))  # channels
PADDED = ((1, 2, 3, 5), ((0, 0), (1, 0), (2, 1), (0, 0)), (1, 3, 6, 5))


def line_calls(target):
    """Yields one call per copy, for tensors that are aligned to words, and for others."""
    for shift, graph in [(shift, graph) for shift in (0, 1) for graph in line_graphs()]:
        op = graph.ops[0]
        for copy in copies(graph, op):
            yield line_call(select(target, graph, op), copy, shift)


def line_graphs():
    for shape, begin, extent, step in SLICES:
        kind = OpKind.SLICE if step[-1] == 1 else OpKind.STRIDED_SLICE
        yield moving(kind, SliceAttrs(begin, step, extent), [shape], extent)
    for channels in (8, 5):
        around = ((0, 0), (1, 0), (2, 1), (0, 0))
        yield moving(OpKind.PAD, PadAttrs(around), [(1, 3, 4, channels)], (1, 4, 7, channels))
    for channels in JOINED:
        shapes = [(1, 2, 3, count) for count in channels]
        yield moving(OpKind.CONCATENATION, AxisAttrs(3), shapes, (1, 2, 3, sum(channels)))
    shape, sides, out = PADDED
    yield moving(OpKind.PAD, PadAttrs(sides), [shape], out)


def moving(kind, attrs, shapes, out):
    tensors = [activation_tensor(f"x{i}", shape, 0.5, 3) for i, shape in enumerate(shapes)]
    new_case = case(kind, attrs, tensors, [], activation_tensor("y", out, 0.5, 3), [])
    return new_case.graph


def line_call(kernel, copy, shift):
    memory, rank = Memory(copy.size[-1]), len(copy.size)
    rows = (copy.size, copy.in_stride, copy.out_stride)
    geometry = memory.words(rank, *(n for row in rows for n in (*row, *[0] * (MAX_RANK - rank))))
    lines = copy.in_stride[-1] == copy.out_stride[-1] == 1
    data = np.random.default_rng(rank).integers(0, 256, int(np.prod(copy.size)), np.uint8).tobytes()
    read = put_lines(memory, data, shift, starts_of(copy.size, copy.in_stride, copy.in_offset, lines))
    noise = bytes(byte ^ 255 for byte in data)  # each byte differs from the result
    outputs = put_lines(memory, noise, shift, starts_of(copy.size, copy.out_stride, copy.out_offset, lines))
    count = len(data) // len(outputs)
    call = Call(kernel.symbol, (geometry, Address(read[0][0]), Address(outputs[0][0])), memory)
    expected = tuple(data[i : i + count] for i in range(0, len(data), count))
    return WholeCall(kernel, call, outputs, (0, 0), expected)


def starts_of(size, strides, offset, lines):
    """Returns where each line begins in its tensor, ascending; without `lines`, where each element does."""
    outer = len(size) - lines
    return [
        offset + sum(i * s for i, s in zip(index, strides, strict=False))
        for index in np.ndindex(size[:outer])
    ]


def put_lines(memory, data, shift, starts):
    """Puts the lines of a tensor that begins at a multiple of 16 plus `shift`; returns their [first, end)."""
    count, end, places = len(data) // len(starts), -shift, []
    memory.put(b"")
    for i, start in enumerate(starts):
        place = memory.put(data[i * count : (i + 1) * count], align=1, guard=start - end).offset
        end = start + count
        places.append((place, place + count))
    return tuple(places)


# ---- every kernel ----------------------------------------------------------------------------------------


@functools.cache
def whole_calls(family):
    """Returns calls of kernels for whole tensors, for lines of them, and for int16."""
    target = load_target(BOARDS[family])
    lacking = lacking_cases() if family == "cortex_m_mve" else ()  # others are called part by part
    calls = [
        whole_call(target, graph, inputs, seed)
        for seed, (graph, inputs) in enumerate([*mean_cases(), *recurrent_cases(), *wide_cases(), *lacking])
    ]
    calls += line_calls(target)
    return [call for call in calls if call.kernel.sources[0].startswith(family + "/")]


def rare_cases():
    """Yields cases that are rare at random: large kernels, one row of taps, wide groups and pools."""
    for size, step in itertools.product((3, 5, 7), (1, 2)):
        yield depthwise((size, 2 * size + 3), 9, (size, size), (step, step), pad=size // 2)
    yield depthwise((3, 5), 13, (2, 3), (1, 2))
    yield depthwise((9, 1), 6, (5, 1))
    yield depthwise((3, 1), 5, (2, 1), (3, 3), pad=1)  # one column, which is padding
    yield depthwise((4, 21), 3, (3, 2), pad=1)
    yield depthwise((2, 5), 1, (2, 5), pad=2)
    for taps in (5, 6, 7, 8, 11):
        yield depthwise((2, 11), 21, (1, taps), pad=taps // 2)
    for taps in (3, 6, 13):
        yield depthwise((23, 1), 19, (taps, 1))
    yield conv((9, 1), 6, 7, (3, 1), around=(1, 0))
    yield depthwise((4, 19), 17, (3, 3), pad=1, multiplier=3)
    yield depthwise((12, 6), 18, (10, 7), pad=3, multiplier=2)
    yield transposed((3, 7), 17, 5, (3, 3), (2, 2))
    yield transposed((3, 4), 4, 3, (1, 3), (2, 2))  # rows without taps, columns with one or two
    yield transposed((2, 5), 2, 6, (2, 5), (3, 2))
    yield transposed((3, 7), 20, 4, (2, 2), (2, 2))
    yield conv((4, 7), 36, 54, (2, 3), groups=3)
    yield conv((4, 8), 80, 28, stride=(2, 2), groups=4, right=2)  # one-column windows with only padding
    for kind in (OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D):
        yield pool(kind, (3, 3), 21)
    for classes in (1, 10, 35):
        yield softmax((1, 2), classes)
    yield softmax((1, 1), 600, scale=1e-4)  # inputs so equal that every probability becomes 0
    values = BYTES[:255].reshape(1, 1, 255, 1)
    yield unary(OpKind.RELU, Attrs(), values.shape, values, scales=(0.05, 0.05), points=(3, 3))


def lean_cases():
    """Yields convolutions for which the kernels with the least scratch are others than the fastest."""
    yield conv((6, 9), 6, 7, (3, 2), (2, 2))
    yield conv((5, 7), 16, 12, (3, 3), around=(1, 1))
    yield conv((7, 5), 3, 5, (3, 3), around=(1, 1))
    yield conv((4, 7), 36, 9, (1, 5), around=(0, 2))


@functools.cache
def windowed_calls(family):
    """Records calls of int8 kernels in every placement; for the LX106 only where its tools are installed."""
    with recording(family) as recorder:
        for strategy in (*STRATEGIES.values(), *(LINES.values() if family == "cortex_m_mve" else ())):
            record(recorder, strategy, 8)
        collect(pairs((OpKind.MAXIMUM, OpKind.MINIMUM)), 12, run_whole)
        for seed, rare in enumerate(rare_cases()):
            run_whole(rare)
            run_pieces(rare, seed, columns=True, wide=True)
        recorder.choose_lean()
        for seed, each in enumerate(lean_cases()):
            run_whole(each)
            run_pieces(each, seed, columns=True, wide=True)
    return recorder


# A Cortex-M7's loops load ahead.
@pytest.mark.parametrize(("family", "board"), [*sorted(BOARDS.items()), ("cortex_m_dsp", "mps2-an500")])
def test_nothing_but_what_a_call_was_given_is_touched(family, board):
    check_accesses(windowed_calls(family), board)


@families
def test_the_same_of_kernels_of_whole_tensors_and_of_int16(family):
    firmware, calls = windowed_calls(family).firmware(""), whole_calls(family)
    results, accesses = traced(firmware, [whole.call for whole in calls])
    for whole, result, touched in zip(calls, results, accesses, strict=True):
        assert whole.left(result) == whole.wanted, whole.kernel.name
        assert unseen(touched, result) == 0, whole.kernel.name
        writable = (*whole.written, whole.scratch)
        assert strange(touched, whole.call.memory.pieces, writable, image_of(firmware.image())) == [], (
            whole.kernel.name
        )


@families
def test_every_kernel_of_the_family_is_called(family):
    recorder = windowed_calls(family)
    called = {*recorder.kernels, *(whole.kernel.name for whole in whole_calls(family))}
    kernels = [v for v in recorder.target.kernels if v.sources[0].startswith(family + "/")]
    assert {(v.symbol, v.packing) for v in kernels} == {
        (v.symbol, v.packing) for v in kernels if v.name in called
    }


@families
def test_an_access_beside_what_was_given_is_seen(family):
    """One call of each kernel, without permission for one piece that it loads, or its last stored byte."""
    recorder = windowed_calls(family)
    firmware = recorder.firmware("")
    image = image_of(firmware.image())
    by_size = sorted(recorder.recorded, key=lambda r: r.call.memory.pieces[-1])
    one_each = [*{r.note.split()[0]: r for r in by_size}.values()]  # large ones do not have only padding
    assert len(one_each) == len(recorder.kernels)
    _, accesses = traced(firmware, [r.call for r in one_each])
    for r, touched in zip(one_each, accesses, strict=True):
        loadable, output = r.call.memory.pieces, (r.place.offset, r.place.offset + len(r.wanted))
        assert strange(touched, loadable, (output, r.scratch), image) == [], r.note
        assert strange(touched, loadable, ((output[0], output[1] - 1), r.scratch), image) != [], r.note
        for piece in loadable:
            if piece[0] < piece[1] and not piece[0] <= output[0] < piece[1] and piece != r.scratch:
                others = [other for other in loadable if other != piece]
                messages = strange(touched, others, (output, r.scratch), image)
                assert any(what.startswith("loads") for what in messages), (r.note, piece)
