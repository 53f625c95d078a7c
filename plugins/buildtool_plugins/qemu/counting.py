"""QEMU plugins that count what runs: compiled on first use and kept, their results parsed.

count.c counts instructions, blocks.c blocks of code as well, and waiting for memories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.base.programs import program
from buildtool.target.executed import Executed, Ran, Waited, Work
from buildtool.target.hardware import Memory
from buildtool.target.speeds import WORD
from buildtool.target.types import Board
from buildtool_plugins.tools.find import find_host_compiler

SOURCE = Path(__file__).resolve().parent / "count.c"
BLOCKS_SOURCE = SOURCE.with_name("blocks.c")
FLAGS = ("-std=gnu99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
OUTPUT = "counts.txt"  # in the run's folder
LINES = ("block", "ran", "reads")  # what the plugin's own lines begin with
_SIZES = (1, 2, 4, 8, 16)  # bytes of an access past a cache
_LINE = re.compile(
    r"block (?P<block>\d+) (?P<start>\d+) (?P<code>(?:[0-9a-f]{2})+)"
    r"|ran (?P<ran>-1|\d+) (?P<what>\d+) (?P<times>\d+) (?P<taken>\d+)"
    r"|reads (?P<reads>-1|\d+) (?P<memory>\d+) (?P<fetched>\d+) (?P<lines>\d+) (?P<sizes>\d+(?: \d+){4})"
)


def counting_plugin(source: Path = SOURCE) -> Path:
    """A plugin's shared object; raises ToolError when no host compiler is found or it fails."""
    cc = find_host_compiler()
    return program(cc, f"{source.stem}.so", (source,), FLAGS, "QEMU's counting plugin", source)


def parse_running(text: bytes) -> int | None:
    """The operator in the middle of which the run ended; None if it ended elsewhere."""
    match = re.search(rb"^running (\d+)$", text, re.MULTILINE)
    return int(match[1]) if match else None


def parse_counts(text: bytes) -> tuple[dict[int, int], int]:
    """Instructions by operator, and of all invokes; raises ToolError."""
    numbers: dict[str, int] = {}
    for line in text.decode("ascii", "replace").splitlines():
        key, _, number = line.partition(" ")
        if key in LINES:
            continue
        if not number.isdecimal() or not (key.isdecimal() or key in ("invokes", "total", "running")):
            raise ToolError(f"QEMU's counting plugin wrote '{line}'")
        numbers[key] = int(number)
    if not numbers.get("invokes"):
        hint = "the image holds no network of buildtool's, or it ended before the first invoke"
        raise ToolError("no invoke was counted", hint=hint)
    counts = {int(key): number for key, number in numbers.items() if key.isdecimal()}
    return counts, numbers.get("total", 0)


def _slow(board: Board) -> list[Memory]:
    """The memories for which the core waits, by the board's data."""
    return [m for m in board.memories if m.speed and (m.speed.access(WORD) or m.speed.cache)]


def arguments(board: Board) -> list[str]:
    """The plugin's arguments: caches, and the memories for which the core waits, where they are emulated."""
    bases = dict(board.emulator.bases) if board.emulator else {}
    names = [cache.name for cache in board.caches]
    words = [f"cache={c.line_bytes}:{c.code_bytes}:{c.data_bytes}:{c.ways}" for c in board.caches]
    for memory in _slow(board):
        assert memory.speed is not None
        cache = names.index(memory.speed.cache) if memory.speed.cache else -1
        base = bases.get(memory.name, memory.base)
        words.append(f"memory={base}:{memory.size}:{max(1, memory.speed.bus_bits // 8)}:{cache}")
    return words


def parse_blocks(text: bytes, board: Board) -> Executed:
    """What the plugin wrote of a run; raises ToolError."""
    found = _Found()
    memories, invokes = _slow(board), 0
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
            found.blocks[int(match["block"])] = _Block(int(match["start"]), bytes.fromhex(match["code"]))
        elif match["ran"]:
            times = int(match["times"]), int(match["taken"])
            found.ran.setdefault(int(match["ran"]), {})[int(match["what"])] = times
        else:
            memory = memories[int(match["memory"])]
            speed, cache = memory.speed, board.cache_of(memory)
            assert speed is not None
            # Cycles of what was fetched as code, and of data: lines of a cache, and accesses past one.
            line_cycles = speed.access(cache.line_bytes) if cache else 0
            each = line_cycles if cache and cache.code_bytes else speed.access(max(1, speed.bus_bits // 8))
            numbers = map(int, match["sizes"].split(" "))
            past = sum(n * speed.access(size) for n, size in zip(numbers, _SIZES, strict=True))
            data = int(match["lines"]) * line_cycles + past
            waited = Waited(memory.name, int(match["fetched"]) * each, data)
            found.waited.setdefault(int(match["reads"]), []).append(waited)
    if sorted(found.blocks) != list(range(len(found.blocks))):
        raise ToolError("what QEMU's counting plugin wrote is cut off")
    return found.executed(invokes)


@dataclass(frozen=True)
class _Block:
    start: int
    code: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.code)


@dataclass
class _Found:
    """What was read: blocks by number, and by operator how often each ran (and branched), and waits."""

    blocks: dict[int, _Block] = field(default_factory=dict)
    ran: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    waited: dict[int, list[Waited]] = field(default_factory=dict)

    def executed(self, invokes: int) -> Executed:
        """The run, with what QEMU cut put together again."""
        seen = {number for times in self.ran.values() for number in times}
        self.blocks = {number: block for number, block in self.blocks.items() if number in seen}
        self._join()
        numbers = {number: place for place, number in enumerate(sorted(self.blocks))}
        work = {
            who: Work(
                tuple(Ran(numbers[n], *self.ran[who][n]) for n in sorted(self.ran[who])),
                tuple(self.waited.get(who, ())),
            )
            for who in sorted(self.ran)
        }
        return Executed(tuple(self.blocks[number].code for number in numbers), work, invokes)

    def _join(self) -> None:
        """Joins blocks that always run one after the other: QEMU ends some without a branch, as at pages."""
        starts: dict[int, list[int]] = {}
        for number, block in self.blocks.items():
            starts.setdefault(block.start, []).append(number)
        for number in sorted(self.blocks, key=lambda n: -self.blocks[n].start):  # from the last on
            block = self.blocks[number]
            followers = starts.get(block.end, [])
            if len(followers) == 1 and self._is_one(number, followers[0]):
                self.blocks[number] = _Block(block.start, block.code + self.blocks[followers[0]].code)
                del self.blocks[followers[0]]
                for times in self.ran.values():
                    if number in times:
                        times[number] = times.pop(followers[0])

    def _is_one(self, first: int, second: int) -> bool:
        """Whether the second of two neighbours runs after the first always, and after nothing else."""
        return first != second and all(
            times.get(first, (0, 0))[1] == 0 and times.get(first, (0, 0))[0] == times.get(second, (0, 0))[0]
            for times in self.ran.values()
        )
