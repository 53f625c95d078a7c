"""Compiles the QEMU plugins that count what a firmware executes, and parses their results.

count.c counts instructions. blocks.c also counts blocks of code, and accesses to slow memories.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.base.programs import program
from buildtool.target.executed import BlockRuns, Executed, MemoryWait, Work
from buildtool.target.hardware import Memory
from buildtool.target.speeds import WORD
from buildtool.target.types import Board
from buildtool_plugins.tools.find import find_host_compiler

SOURCE = Path(__file__).resolve().parent / "count.c"
BLOCKS_SOURCE = SOURCE.with_name("blocks.c")
HEADER = SOURCE.with_name("plugin.h")
FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
OUTPUT = "counts.txt"  # in the run's folder
LINES = ("block", "ran", "reads")  # the first words of the lines that only blocks.c writes
_SIZES = (1, 2, 4, 8, 16)  # bytes of an uncached access
_LINE = re.compile(
    r"block (?P<block>\d+) (?P<start>\d+) (?P<code>(?:[0-9a-f]{2})+)"
    r"|ran (?P<ran>-1|\d+) (?P<what>\d+) (?P<times>\d+) (?P<taken>\d+)"
    r"|reads (?P<reads>-1|\d+) (?P<memory>\d+) (?P<fetched>\d+) (?P<lines>\d+) (?P<sizes>\d+(?: \d+){4})"
)


def counting_plugin(source: Path = SOURCE) -> Path:
    """Returns the path of the plugin's shared object, compiled on first use. Raises ToolError if it does not
    compile.
    """
    cc = find_host_compiler()
    header = hashlib.sha256(HEADER.read_bytes()).hexdigest()  # another header makes another program
    flags = (*FLAGS, f"-DHEADER_{header}")
    return program(cc, f"{source.stem}.so", (source,), flags, "QEMU's counting plugin", source)


def parse_running(text: bytes) -> int | None:
    """Returns the position of the operator that was running when the run ended; None if none was. `text` is
    the plugin's output.
    """
    match = re.search(rb"^running (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else None


def parse_counts(text: bytes) -> tuple[dict[int, int], int]:
    """Returns the instructions of each operator, and their total in all invokes. Raises ToolError if the
    plugin's output is damaged, or no invoke was counted.
    """
    numbers: dict[str, int] = {}
    for line in text.decode("ascii", "replace").splitlines():
        key, _, number = line.partition(" ")
        if key in LINES:
            continue
        if not number.isdecimal() or not (key.isdecimal() or key in ("invokes", "total", "running")):
            raise ToolError(f"QEMU's counting plugin wrote '{line}'")
        numbers[key] = int(number)
    if not numbers.get("invokes"):
        hint = "the firmware image holds no network of buildtool's, or it ended before the first invoke"
        raise ToolError("no invoke was counted", hint=hint)
    counts = {int(key): number for key, number in numbers.items() if key.isdecimal()}
    return counts, numbers.get("total", 0)


def _slow_memories(board: Board) -> list[Memory]:
    """Returns the board's memories for which the core waits, or which have a cache."""
    return [m for m in board.memories if m.speed and (m.speed.access(WORD) or m.speed.cache)]


def arguments(board: Board) -> list[str]:
    """Returns the plugin's arguments: the board's caches, and its slow memories at their addresses in the
    emulator.
    """
    bases = dict(board.emulator.bases) if board.emulator else {}
    names = [cache.name for cache in board.caches]
    words = [f"cache={c.line_bytes}:{c.code_bytes}:{c.data_bytes}:{c.ways}" for c in board.caches]
    for memory in _slow_memories(board):
        assert memory.speed is not None
        cache = names.index(memory.speed.cache) if memory.speed.cache else -1
        base = bases.get(memory.name, memory.base)
        words.append(f"memory={base}:{memory.size}:{max(1, memory.speed.bus_bits // 8)}:{cache}")
    return words


def parse_blocks(text: bytes, board: Board) -> Executed:
    """Returns what a run executed, from the plugin's output. Raises ToolError if the output is damaged or cut
    off.
    """
    counted = _BlockCounts()
    memories, invokes = _slow_memories(board), 0
    for line in text.decode("ascii", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "invokes":
            invokes = int(rest)
        if kind not in LINES:
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ToolError(f"QEMU's counting plugin wrote '{line}'")
        if match["block"]:
            counted.blocks[int(match["block"])] = _Block(int(match["start"]), bytes.fromhex(match["code"]))
        elif match["ran"]:
            times = int(match["times"]), int(match["taken"])
            counted.ran.setdefault(int(match["ran"]), {})[int(match["what"])] = times
        else:
            memory = memories[int(match["memory"])]
            speed, cache = memory.speed, board.cache_of(memory)
            assert speed is not None
            # Cycles for code that was fetched, and for data: cache lines and uncached accesses.
            line_cycles = speed.access(cache.line_bytes) if cache else 0
            each = line_cycles if cache and cache.code_bytes else speed.access(max(1, speed.bus_bits // 8))
            numbers = map(int, match["sizes"].split(" "))
            uncached = sum(n * speed.access(size) for n, size in zip(numbers, _SIZES, strict=True))
            data = int(match["lines"]) * line_cycles + uncached
            waited = MemoryWait(memory.name, int(match["fetched"]) * each, data)
            counted.waited.setdefault(int(match["reads"]), []).append(waited)
    if sorted(counted.blocks) != list(range(len(counted.blocks))):
        raise ToolError("the output of QEMU's counting plugin is cut off")
    return counted.executed(invokes)


@dataclass(frozen=True)
class _Block:
    start: int
    code: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.code)


@dataclass
class _BlockCounts:
    """The counts in the plugin's output.

    `blocks`: the blocks of code by number.
    `ran`: for each operator and block, how often it ran and how often it branched.
    `waited`: for each operator, the cycles of waits for memories.
    """

    blocks: dict[int, _Block] = field(default_factory=dict)
    ran: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    waited: dict[int, list[MemoryWait]] = field(default_factory=dict)

    def executed(self, invokes: int) -> Executed:
        """Returns what was executed in this number of invokes. Blocks that QEMU has divided are joined
        again.
        """
        used = {number for times in self.ran.values() for number in times}
        self.blocks = {number: block for number, block in self.blocks.items() if number in used}
        self._join()
        numbers = {number: place for place, number in enumerate(sorted(self.blocks))}
        work = {
            who: Work(
                tuple(BlockRuns(numbers[n], *self.ran[who][n]) for n in sorted(self.ran[who])),
                tuple(self.waited.get(who, ())),
            )
            for who in sorted(self.ran)
        }
        return Executed(tuple(self.blocks[number].code for number in numbers), work, invokes)

    def _join(self) -> None:
        """Joins blocks that always run one after the other. QEMU ends some blocks without a branch, for
        example at pages.
        """
        starts: dict[int, list[int]] = {}
        for number, block in self.blocks.items():
            starts.setdefault(block.start, []).append(number)
        for number in sorted(self.blocks, key=lambda n: -self.blocks[n].start):  # from the last block
            block = self.blocks[number]
            followers = starts.get(block.end, [])
            if len(followers) == 1 and self._is_one(number, followers[0]):
                self.blocks[number] = _Block(block.start, block.code + self.blocks[followers[0]].code)
                del self.blocks[followers[0]]
                for times in self.ran.values():
                    if number in times:
                        times[number] = times.pop(followers[0])

    def _is_one(self, first: int, second: int) -> bool:
        """Whether block `second` always runs after block `first`, and only after it. The arguments are
        numbers.
        """
        return first != second and all(
            times.get(first, (0, 0))[1] == 0 and times.get(first, (0, 0))[0] == times.get(second, (0, 0))[0]
            for times in self.ran.values()
        )
