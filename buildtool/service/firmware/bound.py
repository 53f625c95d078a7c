"""An upper bound of a network's footprint from recorded sizes: it takes no compiler."""

from __future__ import annotations

import re
from collections import Counter

from buildtool.emit.sources import Sources, plan_routines
from buildtool.plan.types import Plan
from buildtool.service.firmware.firmware import kernel_sources
from buildtool.service.firmware.library import is_runtime
from buildtool.service.pipeline.footprint import (
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
from buildtool.target.partitions import boundary, shared_weights
from buildtool.target.plugin import TargetPlugin
from buildtool.target.recorded import Recorded, read, recorded
from buildtool.target.types import Target

# Of emitted code: constants in tables, and what becomes instructions.
FEATURES = ("files", "numbers", "operators", "calls", "arguments", "loops", "branches", "assignments")
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


def bound(
    sources: Sources, plan: Plan, target: Target, plugin: TargetPlugin, compiler: str
) -> Footprint | None:
    """What a network's firmware takes at most; None where nothing is recorded of the core or a kernel.

    `compiler`: the one that is there ("": none); of one that is not recorded, the largest figures that are.
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
    guard_bytes = getattr(plugin, "guard_bytes", lambda _: 0)
    uses = _uses(plan, target, len(sources.image.data), code, variables, guard_bytes(target.board))
    return Footprint(" or ".join(entry.compiler for entry in chosen or entries), False, uses)


def estimate(sources: Sources, plan: Plan, target: Target) -> Footprint | None:
    """What a network's firmware may take on a core without a compiler, by what it takes on another one.

    It is no bound: the code of RV32IMAC and half as much again, of kernels that it does not have the largest
    plain kernel's. None where code does not lie in the arena's memory: there it takes nothing from the arena.
    """
    board, entry = target.board, next(iter(read(*LIKENED)[1]), None)
    if entry is None or board.code != board.arena:
        return None
    _, *kernels = kernel_sources(plan, target)
    plain = {name: size for name, size in entry.code.items() if name.startswith(LIKENED_KERNELS)}
    each = {path: plain.get(f"{LIKENED_KERNELS}/{path.name}", max(plain.values())) for path in kernels}
    each |= {path: _SHARING for path in kernels if path.name.endswith(_SHARED)}
    numbers = features("\n".join(sources.files[name].decode() for name in sources.c_files))
    own = sum(entry.network[name] * n for name, n in zip(FEATURES, numbers, strict=True))
    sizes = {KERNELS: sum(each.values()), FIRMWARE: entry.firmware, NETWORK: max(int(own), _LEAST_NETWORK)}
    code = Counter({f"{CODE} of the {who}": int(LIKENED_FACTOR * size) for who, size in sizes.items()})
    code[f"{STACK} of other threads"] = (board.core.threads - 1) * _THREAD_STACK
    uses = _uses(plan, target, len(sources.image.data), code, entry.variables, 0)
    return Footprint(f"{LIKENED_FACTOR:g} times RV32IMAC", False, uses)


def _default(target: Target) -> str:
    return next(iter(target.board.toolchains), "")


def _code(sources: Sources, plan: Plan, target: Target, entry: Recorded) -> dict[str, int] | None:
    """Code and constants by who brings them; None for a kernel that is not recorded."""
    # The runtime is part of the firmware.
    kernels = [path for path in kernel_sources(plan, target) if not is_runtime(path)]
    names = [f"{path.parent.name}/{path.name}" for path in kernels]
    if any(name not in entry.code for name in names):
        return None
    called = ["", *(c.symbol for c in (*target.named(plan.kernels), *plan_routines(plan, target)) if c)]
    helpers = {name for symbol in called for name in entry.helpers.get(symbol, ())}
    helpers |= {"memmove"} & set(entry.support) if plan.moves else set()
    numbers = features("\n".join(sources.files[name].decode() for name in sources.c_files))
    own = sum(entry.network[name] * n for name, n in zip(FEATURES, numbers, strict=True))
    firmware = entry.firmware + (_UNROLLED if min(plan.arenas) <= _TINY_ARENA else 0)
    firmware += _SECOND if plan.second_at else 0
    return {
        f"{CODE} of the {KERNELS}": sum(entry.code[name] for name in names),
        f"{CODE} of the {FIRMWARE}": firmware + sum(entry.support[name] for name in helpers),
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
