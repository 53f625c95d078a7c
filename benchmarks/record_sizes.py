"""Records the sizes of code and stack.

    python benchmarks/record_sizes.py [--toolchain NAME] [--kernels] BOARD...

Writes buildtool/target/recorded/CORE.toml for each board's core and the compiler that is found for it: the
bytes of every kernel, of the firmware around a network, and what bounds a network's own code; and the stack
that each kernel needs. Entries of other compilers stay. With `--kernels`, for an added kernel, the figures of
firmware and networks stay, too. BUILDTOOL_CLANG and BUILDTOOL_GCC choose compilers.

Kernels are linked all at once: functions are as far apart as they ever will be, so that no call is longer in
another image. Networks are those of the zoo as the board plans them, some in the least memory, some streamed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from buildtool import zoo
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Image, Objective
from buildtool.base.session import Session
from buildtool.emit.header import FRAME_FEATURES, frame_features
from buildtool.emit.sources import Sources, emit, plan_routines
from buildtool.firmware.bound import FEATURES, features
from buildtool.firmware.counting import LinkedImage, link_anyway, roomy
from buildtool.firmware.firmware import link
from buildtool.firmware.linkmap import contributions
from buildtool.firmware.objects import Compiler, Unit, compile_all
from buildtool.firmware.planned import prepare
from buildtool.firmware.sizes import open_elf
from buildtool.firmware.stack.need import Stacks
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import nearest
from buildtool.plan.models import load_network
from buildtool.plan.types import Plan
from buildtool.target.kernels import all_kernel_sources, is_runtime, kernel_includes
from buildtool.target.recorded import FOLDER, Recorded, read
from buildtool.target.registry import load_target, toolchain
from buildtool.target.types import Target, Toolchain

CODE, VARIABLES = (".text", ".rodata"), (".data", ".bss")
TIGHT = ("autoencoder", "ds_cnn", "mobilenetv1_025_96", "resnet8")  # planned in the least memory as well
STREAMED = ("ds_cnn", "resnet8")
MARGIN = 1.02  # of a fitted bound, over every network that it was fitted to
_MERGED = re.compile(r"\.cst\d+$")  # sections of constants that may be merged with those of other objects
RUNTIME = re.compile(r"_nn_(image|crc32)\.o$")  # objects of the runtime, which is part of the firmware
STUB = "void reset_handler(void);\nvoid reset_handler(void) {}\n"


@dataclass(frozen=True)
class Kernels:
    """The sizes of all kernels and routines: code and constants by source, stack by symbol, in bytes.

    `support` has the code of each function of the run-time support (memcpy, 64-bit integers). `helpers` has
    the functions of `support` that each symbol calls.
    """

    code: dict[str, int]
    stack: dict[str, int]
    support: dict[str, int]
    helpers: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Sample:
    """The sizes of a linked network: its code and variables, those of the other firmware, its stack frames.

    `others` is the other firmware's code without run-time support. `pulled` is support that no kernel calls.
    """

    features: tuple[int, ...]
    frames: tuple[int, ...]
    code: int
    variables: int
    others: int
    pulled: frozenset[str]
    other_variables: int
    stack: int


def kernels(target: Target, tools: Toolchain) -> Kernels:
    """Links all kernels into one image, and returns their sizes."""
    sources = [path for path in all_kernel_sources(target) if not is_runtime(path)]
    wanted = sorted({callee.symbol for callee in (*target.kernels, *target.routines)})
    includes = kernel_includes(target)
    own = (*map(Path, tools.includes), *includes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stub.c").write_text(STUB)
        compiler = Compiler(tools.cc, tools.identity, tools.cflags)
        support = [Path(p) for p in tools.objects if "startup" not in p]
        units = [
            *(Unit(source, includes) for source in sources),
            *(Unit(source, own) for source in (folder / "stub.c", *support)),
        ]
        objects = compile_all(compiler, units, folder)
        elf, table = folder / "all.elf", folder / "all.map"
        roots = [word for symbol in wanted for word in ("-Xlinker", f"--undefined={symbol}")]
        link(roomy(tools), objects, elf, target, [*roots, "-Xlinker", f"-Map={table}"])
        shares = contributions(table.read_text())
        stacks = Stacks(open_elf(elf.read_bytes()), target.board.core.vector_bits // 8)
        supported = _defined(objects[len(sources) + 1 :])
        merged_ = {path.name: _merged(path) for path in objects}
    names = {path.name: f"{s.parent.name}/{s.name}" for path, s in zip(objects, sources, strict=False)}
    code = {name: merged_[file] for file, name in names.items()}
    for share in shares:
        file = Path(share.file).name
        if file in names and share.output in CODE and not _MERGED.search(share.section):
            code[names[file]] += share.bytes
    if not all(code.values()):
        raise SystemExit(f"the linker's map lists no code of {[n for n, size in code.items() if not size]}")
    return Kernels(
        code,
        {symbol: _known(stacks.need(symbol), symbol) for symbol in wanted},
        {
            name: size
            for symbol in wanted
            for name, size in stacks.reached(symbol).items()
            if name in supported
        },
        {symbol: tuple(sorted(supported & set(stacks.reached(symbol)))) for symbol in wanted},
    )


def _merged(path: Path) -> int:
    """Returns the bytes of an object's constants that the linker may merge with other objects' constants."""
    sections = open_elf(path.read_bytes()).iter_sections()
    return sum(int(s["sh_size"]) for s in sections if re.match(r"\.rodata.*\.cst\d+$", s.name))


def _known(need: int | None, symbol: str) -> int:
    if need is None:
        raise SystemExit(f"the stack of {symbol} cannot be told")
    return need


def _defined(objects: Sequence[Path]) -> set[str]:
    """Returns the names of the functions that the objects define."""
    tables = (open_elf(path.read_bytes()).get_section_by_name(".symtab") for path in objects)
    return {s.name for table in tables for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"}


def samples(target: Target, tools: Toolchain, known: Kernels) -> Iterator[Sample]:
    """Yields the sizes of the zoo's networks on a board."""
    ways = [(name, PlanOptions()) for name in zoo.names()]
    ways += [(name, PlanOptions(objective=Objective.RAM)) for name in TIGHT]
    ways += [(name, PlanOptions(objective=Objective.RAM, image=Image.STREAM)) for name in STREAMED]
    for name, options in ways:
        session = Session()
        try:
            network = load_network(name, session)
            graph, plan = nearest(prepare(network, target, options, session))
        except BuildtoolError as error:
            print(f"{name} on {target.board.name}: {error}")
            continue
        sources = emit(graph, plan, target, network.model.name, session)
        with tempfile.TemporaryDirectory() as folder:
            image = link_anyway(sources, plan, target, tools, Path(folder))
            yield _sample(sources, plan, target, image, known)


def _sample(sources: Sources, plan: Plan, target: Target, image: LinkedImage, known: Kernels) -> Sample:
    kernel_objects = [path for path in image.objects.kernels if not RUNTIME.search(path.name)]
    kept = {path.name for path in (*image.objects.network, *kernel_objects)}
    rest = [path for path in image.objects.all if path.name not in kept]
    own = {path.name for path in image.objects.network}
    others = {share.file for share in image.shares} - kept
    called = {c.symbol for c in (*target.kernels_by_name(plan.kernels), *plan_routines(plan, target)) if c}
    helped = {name for symbol in called for name in known.helpers[symbol]} | (
        {"memmove"} if plan.moves else set()
    )
    stacks = Stacks(open_elf(image.elf), target.board.core.vector_bits // 8)
    present = {name: stacks.size(name) for name in known.support if name in stacks.functions}
    text = sources.files[f"{sources.net}.c"].decode()
    need = _known(stacks.need(f"{sources.net}_invoke"), sources.net)
    return Sample(
        features(text),
        frame_features(text),
        _taken(image, own, CODE) + sum(map(_merged, image.objects.network)),
        _taken(image, own, VARIABLES),
        _taken(image, others, CODE) + sum(map(_merged, rest)) - sum(present.values()),
        frozenset(set(present) - helped),
        _taken(image, others, VARIABLES),
        need - max(known.stack[symbol] for symbol in called),
    )


def _taken(image: LinkedImage, files: set[str], sections: Sequence[str]) -> int:
    """Returns the bytes that objects add to sections, without constants that may be merged."""
    found = (s for s in image.shares if s.file in files and s.output in sections)
    return sum(share.bytes for share in found if not _MERGED.search(share.section))


def bound(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> tuple[float, ...]:
    """Returns weights >= 0 for the features, such that each row's weighted sum is at least its size.

    They are fitted by least squares, and then scaled.
    """
    a, b = np.array(rows, float), np.array(sizes, float)
    scale = a.max(axis=0)
    scale[scale == 0] = 1
    left, weights = a / scale / b[:, None], np.ones(a.shape[1])
    for _ in range(200_000):  # multiplicative updates keep every weight at or above 0
        weights *= left.sum(axis=0) / np.maximum(left.T @ (left @ weights), 1e-12)
    weights /= scale
    return tuple(float(w) for w in weights * MARGIN * max(b / (a @ weights)))


def line(xs: Sequence[int], ys: Sequence[int]) -> tuple[float, float]:
    """Returns (start, slope) of the line above all points that has the least sum of distances to them."""
    slopes = np.arange(0, 129)
    starts = np.array([max(0, *(y - s * x for x, y in zip(xs, ys, strict=True))) for s in slopes])
    best = int(np.argmin(starts * len(xs) + slopes * sum(xs)))
    return float(starts[best]), float(slopes[best])


def record(board: str, name: str, old: Sequence[Recorded]) -> Recorded:
    """Returns the record of a board's core and a compiler.

    If `old` has this compiler, only its sizes of kernels are replaced.
    """
    target = load_target(board)
    tools = toolchain(target, name)
    known = kernels(target, tools)
    helpers = {symbol: list(names) for symbol, names in known.helpers.items() if names}
    for entry in old:
        if entry.compiler == tools.identity:
            kept = {"": entry.helpers[""]}
            return replace(
                entry,
                code=known.code,
                stack=known.stack,
                support=known.support,
                helpers=kept | helpers,
            )
    found = list(samples(target, tools, known))
    network = bound([s.features for s in found], [s.code for s in found])
    frame = line([s.frames[1] - 1 for s in found], [s.stack for s in found])  # without the spare view
    base = sorted({name for s in found for name in s.pulled})
    return Recorded(
        compiler=tools.identity,
        toolchain=tools.name,
        code=known.code,
        stack=known.stack,
        support=known.support,
        helpers={"": base} | helpers,
        firmware=max(s.others for s in found),
        variables=max(s.variables for s in found) + max(s.other_variables for s in found),
        network=dict(zip(FEATURES, (round(w, 3) + 0.001 for w in network), strict=True)),
        frame=dict(zip(FRAME_FEATURES, frame, strict=True)),
    )


def with_entry(old: Sequence[Recorded], made: Recorded) -> tuple[Recorded, ...]:
    """Returns `old` with the entry of the same compiler replaced or added, sorted by name and version."""
    others = [entry for entry in old if entry.compiler != made.compiler]
    return tuple(sorted((*others, made), key=lambda entry: (entry.toolchain, _version(entry.compiler))))


def _version(compiler: str) -> tuple[int, ...]:
    return tuple(int(part) for part in compiler.rsplit(maxsplit=1)[-1].split(".") if part.isdigit())


def table(cflags: Sequence[str], vector_bits: int, entries: Sequence[Recorded]) -> str:
    """Returns the text of a file of records."""
    lines = [
        "# Written by benchmarks/record_sizes.py: bytes of code and stack, see buildtool/target/recorded.py.",
        f"cflags = [{', '.join(_quoted(flag) for flag in cflags)}]",
        f"vector_bits = {vector_bits}",
    ]
    for entry in entries:
        lines += ["", "[[compilers]]"]
        lines += [f"{key} = {_quoted(getattr(entry, key))}" for key in ("compiler", "toolchain")]
        lines += [f"{key} = {getattr(entry, key)}" for key in ("firmware", "variables")]
        for key in ("network", "frame", "code", "stack", "support", "helpers"):
            lines += ["", f"[compilers.{key}]"]
            table: Mapping[str, float | Sequence[str]] = getattr(entry, key)
            lines += [f"{_quoted(name)} = {_value(table[name])}" for name in sorted(table)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return f'"{text}"'


def _value(value: float | Sequence[str]) -> str:
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else f"{value:.3f}"
    return f"[{', '.join(map(_quoted, value))}]"


def main() -> None:
    """Records the sizes for the cores of the given boards."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("boards", nargs="+", metavar="BOARD")
    parser.add_argument("--toolchain", default="")
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args()
    for board in given.boards:
        core = load_target(board).board.core
        path, old = read(core.cflags, core.vector_bits)
        path = path or FOLDER / f"{core.name}.toml"
        if not old and path.exists():
            path = FOLDER / f"{board}.toml"  # another board has a core of that name and other flags
        path.parent.mkdir(exist_ok=True)
        made = record(board, given.toolchain, old if given.kernels else ())
        path.write_text(table(core.cflags, core.vector_bits, with_entry(old, made)), encoding="utf-8")
        print(f"{board}: {made.compiler} -> {path.name}", flush=True)


if __name__ == "__main__":
    main()
