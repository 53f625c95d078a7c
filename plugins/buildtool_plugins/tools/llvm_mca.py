"""Computes the cycles of blocks of code with LLVM's llvm-mca. One run times all blocks, each in a region of
its own.

A block is timed as the body of a loop: llvm-mca's cycles for many iterations minus those for few, so that
filling the pipeline does not count. These models have no taken branches, caches and memories. Instructions
that a model does not know are left out, and named.
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
CALLS = "-call-latency=1"  # otherwise a call takes 100 cycles; Pipeline has the cost of taken branches
FIRST_WITH_CALLS, FIRST_WITH_SKIP = 19, 20  # versions of LLVM
MARKS = 5  # after each block: a condition at its end may apply to four more instructions
_MOST_TRIES = 16  # for a version that cannot skip instructions
_SECONDS = 120.0
_REGION = re.compile(r"^\[\d+\] Code Region - b(\d+)$")
_SEVERAL_WORDS = re.compile(
    r"(?P<pair>(?:ldrd|strd)\b)|v?(?:ldm|stm|push|pop)[a-z0-9.]*\b.*\{(?P<list>[^}]*)\}", re.ASCII
)
_CONDITION = re.compile(r"(?:it|vpst|vpt)(?P<others>[te]*)(?:[. ]|$)")
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)$")
_UNSUPPORTED = re.compile(r"^note: instruction:\s+(\S+)(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Isa:
    """An instruction set for LLVM.

    `triple`: its target triple.
    `mark`, `mark_text`: the code and the text of an instruction that marks the end of a block. No kernel
    contains it.
    `options`: further options for llvm-mca.
    """

    triple: str
    mark: bytes
    mark_text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class LlvmMca:
    """Times blocks of code with LLVM's model of a core; see buildtool.target.plugin.Timer.

    `mca`, `mc`: the paths of llvm-mca and llvm-mc.
    `model`: LLVM's name of the core.
    `skips`: the option that leaves out unknown instructions, if this version has it.
    """

    mca: str
    mc: str
    version: str
    model: str
    isa: Isa
    skips: tuple[str, ...] = field(default=(SKIP,), compare=False)

    @property
    def identity(self) -> str:
        """The program, its version and the model, as one text."""
        return f"llvm-mca {self.version}, -mcpu={self.model}"

    def time(self, blocks: Sequence[bytes]) -> list[BlockTime]:
        """Returns the time of each block of machine code, in order. Raises ToolError if a program fails."""
        if not blocks:
            return []
        texts = self.disassemble(blocks)
        dropped: set[str] = set()
        few, skipped = self._cycles(texts, FEW, dropped)
        many, _ = self._cycles(texts, MANY, dropped)
        times = []
        for number, text in enumerate(texts):
            cycles = Fraction(many.get(number, 0) - few.get(number, 0), MANY - FEW)
            left_out = {name for name in map(_instruction_name, text) if name in skipped}
            words = tuple(sorted(number for number in map(_moved_words, text) if number > 1))
            times.append(BlockTime(cycles, tuple(sorted(left_out)), words))
        return times

    def disassemble(self, blocks: Sequence[bytes]) -> list[list[str]]:
        """Returns the instructions of each block as text."""
        code = b"".join(block + MARKS * self.isa.mark for block in blocks)
        words = [self.mc, "--disassemble", f"-triple={self.isa.triple}"]
        process = self._run(words, " ".join(f"0x{byte:02x}" for byte in code))
        if process.returncode:
            raise ToolError(f"{Path(self.mc).name} failed: {process.stderr.strip()[:400]}")
        texts, marks = [list[str]()], 0
        for line in process.stdout.splitlines():
            text = " ".join(line.split())
            if text == self.isa.mark_text:
                marks = (marks + 1) % MARKS
                if not marks:
                    texts.append([])
            elif text and not text.startswith("."):
                texts[-1].append(text)
        if len(texts) != len(blocks) + 1:
            raise ToolError(f"{Path(self.mc).name} read {len(texts) - 1} blocks of {len(blocks)}")
        return [_close_conditions(text) for text in texts[:-1]]

    def _cycles(
        self, texts: Sequence[Sequence[str]], iterations: int, dropped: set[str]
    ) -> tuple[dict[int, int], set[str]]:
        """Returns the cycles of each block for all `iterations`, by the block's number, and the names of
        unknown instructions.

        `texts` has the blocks' instructions. A block without any known instruction is left out. `dropped` has
        the instructions to remove before the call, for a version that cannot skip them; this method may add
        more.
        """
        options = (f"-iterations={iterations}", CALLS, "-resource-pressure=false", "-instruction-info=false")
        for _ in range(_MOST_TRIES):
            lines = [[t for t in text if _instruction_name(t) not in dropped] for text in texts]
            source = "".join(
                "\n".join((f"# LLVM-MCA-BEGIN b{number}", *text, f"# LLVM-MCA-END b{number}\n"))
                for number, text in enumerate(lines)
                if text
            )
            process = self._run(
                [self.mca, f"-mtriple={self.isa.triple}", *options, *self.skips, *self.isa.options], source
            )
            unknown = {match[1] for match in _UNSUPPORTED.finditer(process.stderr)}
            if process.returncode == 0:
                return _parse_report(process.stdout), dropped | unknown
            if unknown <= dropped:
                break
            dropped |= unknown
        errors = (line for line in process.stderr.splitlines() if "error:" in line)
        message = next(errors, f"exit status {process.returncode}").strip()
        raise ToolError(f"{Path(self.mca).name} cannot time the code: {message}")

    def _run(self, command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
        words = [*command, f"-mcpu={self.model}"]
        how: dict[str, Any] = {"text": True, "errors": "replace", "timeout": _SECONDS}
        try:
            return subprocess.run(words, input=text, capture_output=True, check=False, **how)
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolError(f"{Path(command[0]).name} cannot be run: {error}") from None


def llvm_mca(model: str, isa: Isa) -> LlvmMca:
    """Returns the llvm-mca of the clang in use. If it is missing or too old, the ToolError's hint is the
    command that installs it.
    """
    clang = find_clang()
    version = clang.version[0]
    if version < FIRST_WITH_CALLS:
        raise ToolError(
            f"llvm-mca-{version} counts 100 cycles for each call; it takes version {FIRST_WITH_CALLS}",
            hint=f"apt-get install clang-{FIRST_WITH_CALLS} llvm-{FIRST_WITH_CALLS}",
        )
    folder = Path(clang.path).resolve().parent
    mca, mc = (
        shutil.which(f"{name}-{version}") or shutil.which(str(folder / name))
        for name in ("llvm-mca", "llvm-mc")
    )
    if mca is None or mc is None:
        hint = f"apt-get install llvm-{version}"
        raise ToolError(f"llvm-mca-{version}, LLVM's model of the core, was not found", hint=hint)
    skips = (SKIP,) if version >= FIRST_WITH_SKIP else ()
    return LlvmMca(mca, mc, ".".join(map(str, clang.version)), model, isa, skips)


def _instruction_name(line: str) -> str:
    """Returns the name of the instruction in a line."""
    return line.partition(" ")[0]


def _moved_words(line: str) -> int:
    """Returns how many words an instruction with a list or pair of registers loads or stores; 0 for other
    instructions.
    """
    match = _SEVERAL_WORDS.match(line)
    if match is None:
        return 0
    if match["pair"]:
        return 2
    registers = match["list"].split(",")
    return len(registers) * (2 if registers[0].strip().startswith("d") else 1)


def _close_conditions(text: Sequence[str]) -> list[str]:
    """Returns a block's instructions in which conditions (Thumb's IT, Helium's VPT) end with the block at the
    latest.
    """
    lines = []
    for following, line in zip(range(len(text) - 1, -1, -1), text, strict=True):
        match = _CONDITION.match(line)
        if match is None:
            lines.append(line)
        elif following:
            others = match["others"][: following - 1]
            lines.append(line[: match.start("others")] + others + line[match.end("others") :])
    return lines


def _parse_report(report: str) -> dict[int, int]:
    """Returns the total cycles of each block in llvm-mca's report."""
    cycles: dict[int, int] = {}
    number: int | None = None
    for line in report.splitlines():
        if match := _REGION.match(line):
            number = int(match[1])
        elif (match := _CYCLES.match(line)) and number is not None:
            cycles[number] = int(match[1])
            number = None
    return cycles
