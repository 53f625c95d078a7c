"""Cycles of blocks of code by LLVM's llvm-mca: all blocks in one text, a region each.

A block is taken to run again and again, as the body of a loop does: what llvm-mca says of it with many
iterations less what it says with few, so that filling the pipeline does not count. Taken branches, caches and
memories are not in these models. Instructions that a model knows nothing of are left out, and named.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from buildtool.base.errors import ToolError
from buildtool.target.executed import BlockTime
from buildtool_plugins.tools.find import find_clang

FEW, MANY = 20, 70  # iterations of a block
SKIP = "-skip-unsupported-instructions=lack-sched"
FIRST_WITH_SKIP = 20  # of LLVM
MARKS = 5  # behind each block: a condition at its end may hold for four more instructions
_MOST_TRIES = 16  # of a version that cannot skip by itself
_SECONDS = 120.0
_REGION = re.compile(r"^\[\d+\] Code Region - b(\d+)$")
_SEVERAL = re.compile(
    r"(?P<pair>(?:ldrd|strd)\b)|v?(?:ldm|stm|push|pop)[a-z0-9.]*\b.*\{(?P<list>[^}]*)\}", re.ASCII
)
_CONDITION = re.compile(r"(?:it|vpst|vpt)([te]*)(?:[. ]|$)")
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)$")
_UNSUPPORTED = re.compile(r"^note: instruction:\s+(\S+)(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Isa:
    """How LLVM is told an instruction set: its triple, and an instruction that no kernel has, as bytes.

    `options`: more for llvm-mca.
    """

    triple: str
    mark: bytes
    mark_text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class LlvmMca:
    """See buildtool.target.plugin.Timer: `mca` and `mc` are LLVM's programs of clang's version."""

    mca: str
    mc: str
    version: str
    model: str
    isa: Isa
    skips: tuple[str, ...] = field(default=(SKIP,), compare=False)

    @property
    def identity(self) -> str:
        """Program, version and model."""
        return f"llvm-mca {self.version}, -mcpu={self.model}"

    def time(self, blocks: Sequence[bytes]) -> list[BlockTime]:
        """The time of each block, in their order; raises ToolError."""
        if not blocks:
            return []
        texts = self.disassemble(blocks)
        dropped: set[str] = set()
        few, skipped = self._cycles(texts, FEW, dropped)
        many, _ = self._cycles(texts, MANY, dropped)
        found = []
        for number, text in enumerate(texts):
            cycles = Fraction(many.get(number, 0) - few.get(number, 0), MANY - FEW)
            left_out = {name for name in map(_name, text) if name in skipped}
            words = tuple(sorted(number for number in map(_words, text) if number > 1))
            found.append(BlockTime(cycles, tuple(sorted(left_out)), words))
        return found

    def disassemble(self, blocks: Sequence[bytes]) -> list[list[str]]:
        """The instructions of each block as text."""
        code = b"".join(block + MARKS * self.isa.mark for block in blocks)
        words = [self.mc, "--disassemble", f"-triple={self.isa.triple}"]
        done = self._run(words, " ".join(f"0x{byte:02x}" for byte in code))
        if done.returncode:
            raise ToolError(f"{Path(self.mc).name} failed: {done.stderr.strip()[:400]}")
        texts, marks = [list[str]()], 0
        for line in done.stdout.splitlines():
            text = " ".join(line.split())
            if text == self.isa.mark_text:
                marks = (marks + 1) % MARKS
                if not marks:
                    texts.append([])
            elif text and not text.startswith("."):
                texts[-1].append(text)
        if len(texts) != len(blocks) + 1:
            raise ToolError(f"{Path(self.mc).name} read {len(texts) - 1} blocks of {len(blocks)}")
        return [_without_open_conditions(text) for text in texts[:-1]]

    def _cycles(
        self, texts: Sequence[Sequence[str]], iterations: int, dropped: set[str]
    ) -> tuple[dict[int, int], set[str]]:
        """Cycles of the iterations by block, for blocks with a known instruction; and skipped instructions.

        `dropped`: instructions withheld from a version that cannot skip them; more may be added.
        """
        options = (f"-iterations={iterations}", "-resource-pressure=false", "-instruction-info=false")
        for _ in range(_MOST_TRIES):
            kept = [[t for t in text if _name(t) not in dropped] for text in texts]
            source = "".join(
                "\n".join((f"# LLVM-MCA-BEGIN b{number}", *text, f"# LLVM-MCA-END b{number}\n"))
                for number, text in enumerate(kept)
                if text
            )
            done = self._run(
                [self.mca, f"-mtriple={self.isa.triple}", *options, *self.skips, *self.isa.options], source
            )
            unknown = {match[1] for match in _UNSUPPORTED.finditer(done.stderr)}
            if done.returncode == 0:
                return _parse(done.stdout), dropped | unknown
            if unknown <= dropped:
                break
            dropped |= unknown
        errors = (line for line in done.stderr.splitlines() if "error:" in line)
        said = next(errors, f"exit status {done.returncode}").strip()
        raise ToolError(f"{Path(self.mca).name} cannot time the code: {said}")

    def _run(self, command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
        words = [*command, f"-mcpu={self.model}"]
        how: dict[str, Any] = {"text": True, "errors": "replace", "timeout": _SECONDS}
        try:
            return subprocess.run(words, input=text, capture_output=True, check=False, **how)
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolError(f"{Path(command[0]).name} cannot be run: {error}") from None


def llvm_mca(model: str, isa: Isa) -> LlvmMca:
    """The llvm-mca that belongs to the clang in use; raises ToolError with the line that installs it."""
    clang = find_clang()
    version = clang.version[0]
    beside = Path(clang.path).resolve().parent
    mca, mc = (
        shutil.which(f"{name}-{version}") or shutil.which(str(beside / name))
        for name in ("llvm-mca", "llvm-mc")
    )
    if mca is None or mc is None:
        hint = f"apt-get install llvm-{version}"
        raise ToolError(f"llvm-mca-{version}, LLVM's model of the core, was not found", hint=hint)
    skips = (SKIP,) if version >= FIRST_WITH_SKIP else ()
    return LlvmMca(mca, mc, ".".join(map(str, clang.version)), model, isa, skips)


def _name(line: str) -> str:
    """Of an instruction."""
    return line.partition(" ")[0]


def _words(line: str) -> int:
    """The words that an instruction moves by a list or pair of registers; 0: it does no such thing."""
    match = _SEVERAL.match(line)
    if match is None:
        return 0
    if match["pair"]:
        return 2
    registers = match["list"].split(",")
    return len(registers) * (2 if registers[0].strip().startswith("d") else 1)


def _without_open_conditions(text: Sequence[str]) -> list[str]:
    """Without a condition for instructions that are no longer in the block: Thumb's IT, Helium's VPT."""
    kept = []
    for left, line in zip(range(len(text) - 1, -1, -1), text, strict=True):
        match = _CONDITION.match(line)
        if match is None or len(match[1]) + 1 <= left:
            kept.append(line)
    return kept


def _parse(said: str) -> dict[int, int]:
    """Block -> its total cycles, from llvm-mca's report."""
    found: dict[int, int] = {}
    number: int | None = None
    for line in said.splitlines():
        if match := _REGION.match(line):
            number = int(match[1])
        elif (match := _CYCLES.match(line)) and number is not None:
            found[number] = int(match[1])
            number = None
    return found
