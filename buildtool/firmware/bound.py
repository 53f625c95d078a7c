"""Computes an upper bound of the memory that firmware takes, from recorded sizes; it needs no compiler."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.session import Session
from buildtool.emit.image import image_layout, image_of_zeros
from buildtool.firmware import needs
from buildtool.firmware.needs import Footprint, MemoryUse, parts_of
from buildtool.plan.types import Plan
from buildtool.target import catalogue, registry
from buildtool.target.choice import arena_memories, copies_weights
from buildtool.target.hardware import FirmwareUse
from buildtool.target.kernels import RUNTIME, is_runtime, source_files
from buildtool.target.partitions import boundary, weights_follow_firmware
from buildtool.target.recorded import Recorded, read, recorded_sizes
from buildtool.target.types import Board, Target

if TYPE_CHECKING:
    from buildtool.emit.sources import Sources
    from buildtool.graph.types import Graph

# Figures of emitted code: constants in tables, and constructs that become instructions.
FEATURES = ("files", "numbers", "operators", "calls", "arguments", "loops", "branches", "assignments")
ANY_COMPILER = "any"  # for `bound`
LEAST_SHARE = 2 / 3  # linked code is at least this share of its bound, also for small networks
_COMMENT = re.compile(r"/\*.*?\*/|^#.*?$|NN_TRACE\w*\(.*?\);", re.DOTALL | re.MULTILINE)
_BY_COLUMNS = re.compile(r"\bif \(x_\d+ < end_\d+\)")
_TABLE = re.compile(r"static const \w+ \w+(?:\[\d*\])* = \{(.*?)\};", re.DOTALL)
_AROUND_ARENA = 128  # bytes before and behind the arena that the test firmware watches
_LEAST_NETWORK = 512  # bytes of code and constants of a network with one operator
_SPARE = 256  # bytes: the largest error of the fitted size of emitted code, over random small networks
_COLUMNS = 256  # bytes, beyond the fit, for an operator that also runs by columns: its limits and window
_TINY_ARENA = 512  # bytes: the test firmware paints an arena up to this size without a loop
_UNROLLED = 1024  # bytes of code for painting without a loop
_SECOND = 512  # bytes of the test firmware for painting and watching a second arena
ESTIMATED_FROM = (
    ("-march=rv32imac_zicsr", "-mabi=ilp32"),
    0,
)  # the core (RV32IMAC) from whose code that of other cores is estimated
LIKENED_KERNELS, LIKENED_FACTOR = "reference", 1.5  # its kernels, and the factor for others
_LINE = 4  # upper limit for the code of a line of assembly, in bytes
_SHARED, _SHARING = "_threads.c", 512  # files with this ending share calls among threads; their bytes
_THREAD_STACK = 2560  # bytes, as in kernels/runtime/nn_parallel.c
_BESIDE_KERNELS = 3328  # bytes of memcpy and its like, and of the runtime, in the kernels' RAM
_FAR_CALLS = 512  # bytes of the linker's jumps from flash to kernels in RAM
_GAPS = 64 + 16  # the most bytes, where arena and variables share a memory; the arena is aligned to 64


def features(source: str) -> tuple[int, ...]:
    """Returns the counts of the FEATURES in a network's C file, in the order of FEATURES."""
    code = _COMMENT.sub("", source)
    tables = _TABLE.findall(code)
    body = _TABLE.sub("", code)
    counts = {
        "files": 1,
        "numbers": sum(len(re.findall(r"-?\d+", table)) for table in tables),
        "operators": body.count("NN_MARK_BEGIN"),
        "calls": len(re.findall(r"\b\w+\(", body)),
        "arguments": body.count(","),
        "loops": len(re.findall(r"\bfor \(", body)),
        "branches": len(re.findall(r"\bif \(", body)),
        "assignments": len(re.findall(r"[^=<>!]=[^=]", body)),
    }
    return tuple(counts[name] for name in FEATURES)


def bound(sources: Sources, plan: Plan, target: Target, compiler: str) -> Footprint | None:
    """Returns an upper bound of the bytes that firmware takes in each memory.

    Returns None if sizes of the core or of a kernel are not recorded, or if the plan loads constants into the
    arena. `compiler` is the installed compiler. If it is "", the newest recorded compiler of the board's
    first toolchain counts. If it is not recorded, the largest recorded sizes count.
    """
    entries = recorded_sizes(target.board.core)
    if plan.loads or not entries:
        return None
    rows = [entry for entry in entries if entry.compiler == compiler]
    if not rows and not compiler:
        first = next(iter(target.board.toolchains), "")
        rows = [entry for entry in entries if entry.toolchain == first][-1:]
    rows = rows or list(entries)
    code = Counter[str]()
    for entry in rows:
        own = _count_code(sources, plan, target, entry)
        if own is None:
            return None
        code |= Counter(own)
    variables = max(entry.variables for entry in rows)
    uses = _list_uses(plan, target, len(sources.image.data), code, variables, _find_guard_bytes(target.board))
    return Footprint(" or ".join(entry.compiler for entry in rows), False, uses)


def estimate(sources: Sources, plan: Plan, target: Target) -> Footprint | None:
    """Estimates the footprint on a core for which there is no compiler: 1.5 times the code for RV32IMAC.

    This is not a bound. A kernel without a size for RV32IMAC counts as much as the largest reference kernel;
    assembly is estimated from its number of lines. Returns None if code and arena are in different memories,
    because the code then takes nothing from the arena.
    """
    from buildtool.emit.sources import kernel_sources

    board, entry = target.board, next(iter(read(*ESTIMATED_FROM)[1]), None)
    if entry is None or board.code != board.arena:
        return None
    own = _estimate_network_code(sources, entry)
    code = _liken(kernel_sources(plan, target), max(int(own), _LEAST_NETWORK), target, entry)
    uses = _list_uses(plan, target, len(sources.image.data), code, entry.variables, 0)
    return Footprint(f"{LIKENED_FACTOR:g} times RV32IMAC", False, uses)


def _liken(paths: Sequence[Path], own: int, target: Target, entry: Recorded) -> Counter[str]:
    """Estimates the bytes of code and constants of each owner (network, kernels, firmware) from the sizes on
    another core.

    `paths` are the sources of kernels. `own` is the size of the network's code on that core, in bytes.
    `entry` has the recorded sizes on that core.
    """
    plain = {name: size for name, size in entry.code.items() if name.startswith(LIKENED_KERNELS)}
    kernels = [path for path in paths if path.name not in RUNTIME]  # the runtime is part of the firmware
    each = {path: plain.get(f"{LIKENED_KERNELS}/{path.name}", max(plain.values())) for path in kernels}
    each |= {path: _SHARING for path in kernels if path.name.endswith(_SHARED)}
    each |= {path: _LINE * path.read_text().count("\n") for path in kernels if path.suffix == ".S"}
    sizes = {needs.KERNELS: sum(each.values()), needs.FIRMWARE: entry.firmware, needs.NETWORK: own}
    code = Counter({f"{needs.CODE} of the {who}": int(LIKENED_FACTOR * size) for who, size in sizes.items()})
    code[f"{needs.STACK} of other threads"] = (target.board.core.threads - 1) * _THREAD_STACK
    return code


def _estimate_network_code(sources: Sources, entry: Recorded) -> float:
    """Estimates the bytes of code and constants of the emitted C files, from the recorded bytes for each
    feature.
    """
    numbers = features("\n".join(sources.files[name].decode() for name in sources.c_files))
    return sum(entry.network[name] * n for name, n in zip(FEATURES, numbers, strict=True))


# ---- before there is firmware ------------------------------------------------------------------------


def is_estimated(target: Target) -> bool:
    """Whether a board's code size is estimated from another core's code, because there is no compiler for the
    board's core.
    """
    board = target.board
    return board.is_native and board.code == board.arena and board.memory(board.weights).bandwidth > 0


def predicted_footprint(
    graph: Graph, plan: Plan, target: Target, session: Session | None = None
) -> Footprint | None:
    """Returns the firmware's footprint from the recorded sizes of all compilers; None if no sizes are
    recorded.

    It needs no compiler and packs no weights.
    """
    from buildtool.emit.sources import emit

    if target.board.is_native and not is_estimated(target):
        return None
    image = image_of_zeros(graph, target.kernels_by_name(plan.kernels))
    sources = emit(graph, plan, target, "network", session, image)
    if is_estimated(target):
        return estimate(sources, plan, target)
    return bound(sources, plan, target, ANY_COMPILER)


def firmware(
    graph: Graph,
    target: Target,
    plan: Plan | None = None,
    session: Session | None = None,
    *,
    least: bool = False,
) -> tuple[FirmwareUse, ...]:
    """Returns the bytes that firmware takes in each memory, without the arena and the network's state.

    If the arena's memory also holds code, the result includes the code of `plan`, or without a plan the code
    that every plan has. If `least` is true, upper bounds are multiplied by LEAST_SHARE and gaps are left out;
    estimates do not change. The result is empty for firmware that runs on this machine, unless its size is
    estimated.
    """
    board = target.board
    share = LEAST_SHARE if least and not is_estimated(target) else 1.0
    if board.is_native and not is_estimated(target):
        return ()
    entries = read(*ESTIMATED_FROM)[1] if is_estimated(target) else recorded_sizes(board.core)
    parts = {name: Counter({needs.AROUND: _AROUND_ARENA}) for name in arena_memories(board)}
    variables = max((entry.variables for entry in entries), default=0)
    parts.setdefault(board.data, Counter()).update(
        _list_data_parts(board, _find_guard_bytes(board), variables)
    )
    if board.data in board.holders:
        parts[board.data][needs.ALIGNMENT] = _GAPS
    if board.weights in board.holders:
        kernels = catalogue.select_all(target, graph)
        parts.setdefault(board.weights, Counter())[needs.WEIGHTS] = image_layout(graph, kernels).size
    if board.code in board.holders:
        code = _count_code_beside(graph, target, plan, session)
        parts.setdefault(board.code, Counter()).update(code)
    rows = []
    for memory, each in parts.items():
        for name, size in each.items():
            is_bound = name.startswith((needs.CODE, needs.VARIABLES))  # else the size is exact
            scaled = int(size * share) if is_bound else size
            if scaled and (name != needs.ALIGNMENT or share == 1):
                rows.append(FirmwareUse(memory, name, scaled))
    return tuple(rows)


def _list_data_parts(board: Board, guard: int, variables: int) -> dict[str, int]:
    """Returns the bytes of the stack, its guard and the variables: the parts of the memory for data, by
    name.
    """
    return {needs.STACK: board.stack_bytes, needs.GUARD: guard, f"{needs.VARIABLES} of all": variables}


def _list_kernel_parts(code: Mapping[str, int]) -> dict[str, int]:
    """Returns the bytes of the kernels where they run from a RAM, from the bytes of all code by owner."""
    kernels = f"{needs.CODE} of the {needs.KERNELS}"
    gaps = code.get(needs.ALIGNMENT, 0)
    return {
        kernels: code[kernels],
        f"{needs.CODE} of the {needs.FIRMWARE}": _BESIDE_KERNELS,
        needs.ALIGNMENT: gaps,
    }


def _find_guard_bytes(board: Board) -> int:
    """Returns the number of guard bytes below the stack, which detect a stack overflow."""
    return int(getattr(registry.plugin(board), "guard_bytes", lambda _: 0)(board))


def _count_code_beside(
    graph: Graph, target: Target, plan: Plan | None, session: Session | None
) -> Mapping[str, int]:
    """Returns the bytes of code of each owner if code lies in the same memory as the arena.

    Without a plan, only code that every plan has counts. The result is empty if no size is known.
    """
    board = target.board
    if plan is not None:
        footprint = predicted_footprint(graph, plan, target, session)
        of_code = footprint.use(board.code).parts if footprint else ()
        others = {needs.ARENA, needs.AROUND, needs.STATE, needs.WEIGHTS, *_list_data_parts(board, 0, 0)}
        code = {part.name: part.bytes for part in of_code if part.name not in others}
        if needs.ALIGNMENT in code and board.data == board.code:
            code[needs.ALIGNMENT] -= _GAPS  # these gaps count with the variables
        return code
    paths = source_files(target, [kernel for kernel in catalogue.select_all(target, graph) if kernel])
    if is_estimated(target):
        return _liken(paths, _LEAST_NETWORK, target, read(*ESTIMATED_FROM)[1][0])
    names = [f"{path.parent.name}/{path.name}" for path in paths if not is_runtime(path)]
    entries = recorded_sizes(board.core)
    kernels = (sum(entry.code.get(name, 0) for name in names) for entry in entries)
    return {
        f"{needs.CODE} of the {needs.KERNELS}": max(kernels, default=0),
        f"{needs.CODE} of the {needs.FIRMWARE}": max((entry.firmware for entry in entries), default=0),
    }


def _count_code(sources: Sources, plan: Plan, target: Target, entry: Recorded) -> dict[str, int] | None:
    """Returns the bytes of code and constants of each owner (network, kernels, firmware) for one compiler.

    Returns None if a kernel has no recorded size.
    """
    from buildtool.emit.sources import kernel_sources, plan_routines

    # The runtime is part of the firmware.
    kernels = [path for path in kernel_sources(plan, target) if not is_runtime(path)]
    names = [f"{path.parent.name}/{path.name}" for path in kernels]
    if any(name not in entry.code for name in names):
        return None
    symbols = [
        "",
        *(c.symbol for c in (*target.kernels_by_name(plan.kernels), *plan_routines(plan, target)) if c),
    ]
    helpers = {name for symbol in symbols for name in entry.helpers.get(symbol, ())}
    helpers |= {"memmove"} & set(entry.support) if plan.moves else set()
    own = _estimate_network_code(sources, entry)
    own += _COLUMNS * sum(len(_BY_COLUMNS.findall(sources.files[name].decode())) for name in sources.c_files)
    around = entry.firmware + (_UNROLLED if min(plan.arenas) <= _TINY_ARENA else 0)
    around += _SECOND if plan.second_at else 0
    return {
        f"{needs.CODE} of the {needs.KERNELS}": sum(entry.code[name] for name in names),
        f"{needs.CODE} of the {needs.FIRMWARE}": around + sum(entry.support[name] for name in helpers),
        f"{needs.CODE} of the {needs.NETWORK}": max(int(own) + 1, _LEAST_NETWORK) + _SPARE,
        needs.ALIGNMENT: 2 * (len(names) + 16),  # a function begins at a multiple of 4 or less
    }


def _list_uses(
    plan: Plan, target: Target, weights: int, code: Counter[str], variables: int, guard: int
) -> tuple[MemoryUse, ...]:
    board = target.board
    parts: dict[str, Counter[str]] = {}
    arenas = []
    for name, size in zip(board.holders, plan.arenas, strict=False):
        gaps = _GAPS if name == board.data else 0
        arenas.append((name, {needs.ARENA: size, needs.AROUND: _AROUND_ARENA, needs.ALIGNMENT: gaps}))
    for memory, sizes in (
        (board.code, dict(code)),
        (board.weights, {needs.WEIGHTS: weights}),
        (board.data, {**_list_data_parts(board, guard, variables), needs.STATE: plan.state_bytes}),
        *([(board.kernels, _list_kernel_parts(code))] if board.kernels else []),
        *([(board.code, {f"{needs.CODE} of the {needs.FIRMWARE}": _FAR_CALLS})] if board.kernels else []),
        *([(board.code, {needs.WEIGHTS: weights})] if copies_weights(board) else []),
        *arenas,
    ):
        parts.setdefault(memory, Counter()).update(sizes)
    if weights_follow_firmware(board):
        place = board.image.code_start + sum(code.values())
        gap = boundary(board.memory(board.weights), place) - sum(code.values())
        parts[board.code].update({needs.ALIGNMENT: gap})
    return tuple(
        MemoryUse(m.name, (total := sum(parts[m.name].values())), parts_of(parts[m.name], total))
        for m in board.memories
        if m.name in parts
    )
