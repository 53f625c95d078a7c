"""What firmware takes of a board's memories, from recorded sizes: an upper bound, which takes no compiler."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.session import Session
from buildtool.emit.image import image_layout, unpacked_image
from buildtool.firmware.footprint import (
    ALIGNMENT,
    ARENA,
    AROUND,
    CODE,
    FIRMWARE,
    GUARD,
    KERNELS,
    NETWORK,
    STACK,
    STATE,
    VARIABLES,
    WEIGHTS,
    Footprint,
    MemoryUse,
    parts_of,
)
from buildtool.plan.types import Plan
from buildtool.target import catalogue, registry
from buildtool.target.arena_in import arena_memories
from buildtool.target.library import RUNTIME, is_runtime, source_files
from buildtool.target.partitions import boundary, shared_weights
from buildtool.target.recorded import Recorded, read, recorded
from buildtool.target.types import Board, Taken, Target

if TYPE_CHECKING:
    from buildtool.emit.sources import Sources
    from buildtool.graph.types import Graph

# Of emitted code: constants in tables, and what becomes instructions.
FEATURES = ("files", "numbers", "operators", "calls", "arguments", "loops", "branches", "assignments")
ANY_COMPILER = "any"  # for `bound`
LEAST_SHARE = 2 / 3  # of the bound of code: what is linked is not less, small networks included
_COMMENT = re.compile(r"/\*.*?\*/|^#.*?$|NN_TRACE\w*\(.*?\);", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"static const \w+ \w+(?:\[\d*\])* = \{(.*?)\};", re.DOTALL)
_AROUND_ARENA = 128  # bytes that the test firmware watches, before and behind
_LEAST_NETWORK = 512  # code and constants of a network of one operator
_SPARE = 256  # what the fitted size of emitted code was short of at most, of random small networks
_TINY_ARENA = 512  # an arena that the test firmware paints without a loop,
_UNROLLED = 1024  # and what that takes
_SECOND = 512  # of the test firmware, for painting and watching a second arena
LIKENED = (("-march=rv32imac_zicsr", "-mabi=ilp32"), 0)  # the core whose code others are estimated by,
LIKENED_KERNELS, LIKENED_FACTOR = "reference", 1.5  # its kernels, and how much larger that of others may be
_SHARED, _SHARING = (
    "_threads.c",
    512,
)  # ends the names of what shares a kernel's call among threads; its bytes
_THREAD_STACK = 2048  # as in kernels/runtime/nn_parallel.c
_GAPS = 64 + 16  # at most, where arena and variables share a memory; the arena is aligned to 64


def features(source: str) -> tuple[int, ...]:
    """The numbers of FEATURES in a network's C file."""
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
    """What a network's firmware takes at most; None where nothing is recorded of the core or a kernel.

    `compiler`: the one that is there ("": the newest that is recorded of the board's first toolchain); of one
    that is not recorded, the largest figures that are.
    """
    entries = recorded(target.board.core)
    if plan.loads or not entries:
        return None
    chosen = [entry for entry in entries if entry.compiler == compiler]
    if not chosen and not compiler:
        chosen = [entry for entry in entries if entry.toolchain == _default(target)][-1:]
    parts = [_code(sources, plan, target, entry) for entry in chosen or entries]
    if None in parts:
        return None
    code: Counter[str] = Counter()
    for found in parts:
        code |= Counter(found)
    variables = max(entry.variables for entry in chosen or entries)
    uses = _uses(plan, target, len(sources.image.data), code, variables, _guard(target.board))
    return Footprint(" or ".join(entry.compiler for entry in chosen or entries), False, uses)


def estimate(sources: Sources, plan: Plan, target: Target) -> Footprint | None:
    """What a network's firmware may take on a core without a compiler, by what it takes on another one.

    It is no bound: the code of RV32IMAC and half as much again, of kernels that it does not have the largest
    plain kernel's. None where code does not lie in the arena's memory: there it takes nothing from the arena.
    """
    from buildtool.emit.sources import kernel_sources

    board, entry = target.board, next(iter(read(*LIKENED)[1]), None)
    if entry is None or board.code != board.arena:
        return None
    own = _network_code(sources, entry)
    code = _likened(kernel_sources(plan, target), max(int(own), _LEAST_NETWORK), target, entry)
    uses = _uses(plan, target, len(sources.image.data), code, entry.variables, 0)
    return Footprint(f"{LIKENED_FACTOR:g} times RV32IMAC", False, uses)


def _likened(paths: Sequence[Path], own: int, target: Target, entry: Recorded) -> Counter[str]:
    """Code and constants by who brings them, from another core's; `own`: bytes of the network's there."""
    plain = {name: size for name, size in entry.code.items() if name.startswith(LIKENED_KERNELS)}
    kernels = [path for path in paths if path.name not in RUNTIME]  # that is part of the firmware
    each = {path: plain.get(f"{LIKENED_KERNELS}/{path.name}", max(plain.values())) for path in kernels}
    each |= {path: _SHARING for path in kernels if path.name.endswith(_SHARED)}
    sizes = {KERNELS: sum(each.values()), FIRMWARE: entry.firmware, NETWORK: own}
    code = Counter({f"{CODE} of the {who}": int(LIKENED_FACTOR * size) for who, size in sizes.items()})
    code[f"{STACK} of other threads"] = (target.board.core.threads - 1) * _THREAD_STACK
    return code


def _network_code(sources: Sources, entry: Recorded) -> float:
    """Code and constants of what is emitted."""
    numbers = features("\n".join(sources.files[name].decode() for name in sources.c_files))
    return sum(entry.network[name] * n for name, n in zip(FEATURES, numbers, strict=True))


# ---- before there is firmware ------------------------------------------------------------------------


def is_estimated(target: Target) -> bool:
    """Whether a board's code is sized by what it takes on another core, as no compiler makes it here."""
    board = target.board
    return board.is_native and board.code == board.arena and board.memory(board.weights).bandwidth > 0


def foreseen(graph: Graph, plan: Plan, target: Target, session: Session | None = None) -> Footprint | None:
    """What a plan's firmware takes by the sizes recorded, of whichever compiler; None where there are none.

    No compiler is asked for, and no weight packed.
    """
    from buildtool.emit.sources import emit

    if target.board.is_native and not is_estimated(target):
        return None
    image = unpacked_image(graph, target.named(plan.kernels))
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
) -> tuple[Taken, ...]:
    """What firmware takes of a board's memories beside the arena and what the network keeps.

    Where code lies in the arena's memory it is that of `plan`, and without one what every plan has at the
    least. `least`: what is known as a bound is counted at the least that it may turn out to be once it is
    linked, and gaps not at all; an estimate, which is never linked, is taken as it is. Nothing for programs
    of this machine.
    """
    board = target.board
    share = LEAST_SHARE if least and not is_estimated(target) else 1.0
    if board.is_native and not is_estimated(target):
        return ()
    entries = read(*LIKENED)[1] if is_estimated(target) else recorded(board.core)
    parts = {name: Counter({AROUND: _AROUND_ARENA}) for name in arena_memories(board)}
    parts.setdefault(board.data, Counter()).update(
        {
            STACK: board.stack_bytes,
            GUARD: _guard(board),
            f"{VARIABLES} of all": max((entry.variables for entry in entries), default=0),
            **({ALIGNMENT: _GAPS} if board.data in board.holders else {}),
        }
    )
    if board.weights in board.holders:
        kernels = catalogue.select_all(target, graph)
        parts.setdefault(board.weights, Counter())[WEIGHTS] = image_layout(graph, kernels).size
    if board.code in board.holders:
        code = _code_beside(graph, target, plan, session)
        parts.setdefault(board.code, Counter()).update(code)
    named = ((memory, name, size) for memory, each in parts.items() for name, size in each.items())
    counted = ((memory, name, _counted(name, size, share)) for memory, name, size in named)
    return tuple(Taken(memory, name, size) for memory, name, size in counted if size)


def _counted(name: str, size: int, share: float) -> int:
    """Of a part that is known as a bound, the bytes that are counted; the others are known exactly."""
    if name == ALIGNMENT:
        return size if share == 1 else 0
    return int(size * share) if name.startswith((CODE, VARIABLES)) else size


def _guard(board: Board) -> int:
    """Bytes below the stack that catch its overflow."""
    found: int = getattr(registry.plugin(board), "guard_bytes", lambda _: 0)(board)
    return found


def _code_beside(
    graph: Graph, target: Target, plan: Plan | None, session: Session | None
) -> Mapping[str, int]:
    """Code of firmware that lies in the arena's memory, by who brings it; nothing where no size is known."""
    board = target.board
    if plan is not None:
        found = foreseen(graph, plan, target, session)
        of_code = found.use(board.code).parts if found else ()
        counted = (ARENA, AROUND, STACK, GUARD, STATE, WEIGHTS, f"{VARIABLES} of all")
        code = {part.name: part.bytes for part in of_code if part.name not in counted}
        if ALIGNMENT in code and board.data == board.code:
            code[ALIGNMENT] -= _GAPS  # that is counted with the variables
        return code
    paths = source_files(target, [kernel for kernel in catalogue.select_all(target, graph) if kernel])
    if is_estimated(target):
        return _likened(paths, _LEAST_NETWORK, target, read(*LIKENED)[1][0])
    names = [f"{path.parent.name}/{path.name}" for path in paths if not is_runtime(path)]
    entries = recorded(board.core)
    return {
        f"{CODE} of the {KERNELS}": max((sum(e.code.get(n, 0) for n in names) for e in entries), default=0),
        f"{CODE} of the {FIRMWARE}": max((entry.firmware for entry in entries), default=0),
    }


def _default(target: Target) -> str:
    return next(iter(target.board.toolchains), "")


def _code(sources: Sources, plan: Plan, target: Target, entry: Recorded) -> dict[str, int] | None:
    """Code and constants by who brings them; None for a kernel that is not recorded."""
    from buildtool.emit.sources import kernel_sources, plan_routines

    # The runtime is part of the firmware.
    kernels = [path for path in kernel_sources(plan, target) if not is_runtime(path)]
    names = [f"{path.parent.name}/{path.name}" for path in kernels]
    if any(name not in entry.code for name in names):
        return None
    called = ["", *(c.symbol for c in (*target.named(plan.kernels), *plan_routines(plan, target)) if c)]
    helpers = {name for symbol in called for name in entry.helpers.get(symbol, ())}
    helpers |= {"memmove"} & set(entry.support) if plan.moves else set()
    own = _network_code(sources, entry)
    around = entry.firmware + (_UNROLLED if min(plan.arenas) <= _TINY_ARENA else 0)
    around += _SECOND if plan.second_at else 0
    return {
        f"{CODE} of the {KERNELS}": sum(entry.code[name] for name in names),
        f"{CODE} of the {FIRMWARE}": around + sum(entry.support[name] for name in helpers),
        f"{CODE} of the {NETWORK}": max(int(own) + 1, _LEAST_NETWORK) + _SPARE,
        ALIGNMENT: 2 * (len(names) + 16),  # a function begins at a multiple of 4 or less
    }


def _uses(
    plan: Plan, target: Target, weights: int, code: Counter[str], variables: int, guard: int
) -> tuple[MemoryUse, ...]:
    board = target.board
    parts: dict[str, Counter[str]] = {}
    arenas = [
        (name, {ARENA: size, AROUND: _AROUND_ARENA, ALIGNMENT: _GAPS if name == board.data else 0})
        for name, size in zip(board.holders, plan.arenas, strict=False)
    ]
    for memory, named in (
        (board.code, dict(code)),
        (board.weights, {WEIGHTS: weights}),
        (
            board.data,
            {
                STACK: board.stack_bytes,
                GUARD: guard,
                STATE: plan.state_bytes,
                f"{VARIABLES} of all": variables,
            },
        ),
        *arenas,
    ):
        parts.setdefault(memory, Counter()).update(named)
    if shared_weights(board):
        place = board.image.code_start + sum(code.values())
        gap = boundary(board.memory(board.weights), place) - sum(code.values())
        parts[board.code].update({ALIGNMENT: gap})
    return tuple(
        MemoryUse(m.name, (total := sum(parts[m.name].values())), parts_of(parts[m.name], total))
        for m in board.memories
        if m.name in parts
    )
