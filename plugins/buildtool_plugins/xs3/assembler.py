"""Assembles XS3 text: what clang's XCore back end writes, and `.S` files after the C preprocessor.

In dual issue (`.issue_mode dual`) everything has 32 bits: a bundle of two short instructions, or a long
instruction. A single statement takes its long form if it has one, as in XMOS's assembler; otherwise it shares
its bundle with a nop. Of two statements that could be in either half, the first is in the lower one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.encoding import NOP, encode_long, encode_short, instructions
from buildtool_plugins.xs3.expressions import Sum, parse
from buildtool_plugins.xs3.layout import Align, Draft, Jump, Table
from buildtool_plugins.xs3.objects import Fixup, Kind, Object, Section, Symbol
from buildtool_plugins.xs3.operations import Operation, parse_operation, single_symbol

_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*):(?!:)")
_EQUATE = re.compile(r"([A-Za-z_.$][\w.$]*)\s*=(?!=)\s*(.*)")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|(?://|#).*')
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "v": 11}
_SIZES = {"byte": 1, "short": 2, "hword": 2, "half": 2, "value": 2, "long": 4, "word": 4, "int": 4, "quad": 8}
_IGNORED = frozenset(
    "file ident type size cc_top cc_bottom loc addrsig addrsig_sym call add_to_set extern max_reduce syntax"
    " assert local protected hidden internal".split()
)
_RESOURCES = (
    ".globound",
    ".nstackwords",
    ".maxcores",
    ".maxtimers",
    ".maxchanends",
)  # ends of equates for tools
_LEFT_OUT = (".note", ".debug", ".comment", ".eh_frame")  # beginnings of sections


def assemble(text: str, name: str = "text") -> Object:
    """Returns the object that the text assembles to. Raises ToolError with the line of a mistake."""
    return _Assembler(name).run(text)


class _Assembler:
    def __init__(self, name: str) -> None:
        self.name = name
        self.drafts: dict[str, Draft] = {}
        self.equates: dict[str, Sum] = {}
        self.globals: set[str] = set()
        self.weak: set[str] = set()
        self.common: dict[str, tuple[str, str]] = {}
        self.labels: set[str] = set()
        self.is_dual = False
        self.line = 0
        self.draft = self._section(".text", "")
        self.outer: list[Draft] = []  # what .popsection returns to
        self.directives = self._directives()

    def _directives(self) -> dict[str, Callable[[str], None]]:
        return {
            "text": lambda _: self._open(".text", ""),
            "data": lambda _: self._open(".dp.data", "awd"),
            "bss": lambda _: self._open(".dp.bss", "awd"),
            "section": self._on_section,
            "pushsection": self._on_push,
            "popsection": self._on_pop,
            **dict.fromkeys(("globl", "global"), self._on_globl),
            "weak": self._on_weak,
            **dict.fromkeys(("set", "linkset", "equ"), self._on_set),
            "issue_mode": self._on_issue_mode,
            **dict.fromkeys(("align", "balign"), lambda rest: self._align(self._number(rest.split(",")[0]))),
            "p2align": lambda rest: self._align(1 << self._number(rest.split(",")[0])),
            **dict.fromkeys(("space", "skip", "zero"), self._on_space),
            "fill": self._on_fill,
            "base64": self._on_base64,
            "ascii": lambda rest: self._on_ascii(rest, b""),
            **dict.fromkeys(("asciz", "asciiz", "string"), lambda rest: self._on_ascii(rest, b"\0")),
            **dict.fromkeys(("comm", "lcomm"), self._on_comm),
            "jmptable": self._on_jump_table,
            "jmptable32": self._on_long_jump_table,
        }

    def run(self, text: str) -> Object:
        """Returns the object that a whole text assembles to."""
        if "/*" in text:
            text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
        for self.line, line in enumerate(text.splitlines(), 1):
            if line.startswith("\t.byte\t") and line[7:].isdigit():  # most lines of large constants
                self.draft.last().data.append(int(line[7:]))
                continue
            for statement in self._statements(line):
                try:
                    self._statement(statement)
                except ToolError as error:
                    what = f"{error.text}: '{statement}'"
                    raise ToolError(what, path=self.name, line=self.line, hint=error.hints) from None
        self._place_commons()
        return self._finish()

    # ---- statements ------------------------------------------------------------------------------

    def _statements(self, line: str) -> Iterator[str]:
        """Yields the statements of a line without labels and comments; defines its labels."""
        if "#" in line or "/" in line:
            line = _COMMENT.sub(lambda match: match[1] or "", line)
        while match := _LABEL.match(line):
            self._label(match[1])
            line = line[match.end() :]
        cuts = _cuts(line) if ";" in line else []
        if not cuts:
            if line := line.strip():
                yield line
            return
        for start, end in zip([0, *(at + 1 for at in cuts)], [*cuts, len(line)], strict=True):
            yield from self._statements(line[start:end])

    def _statement(self, text: str) -> None:
        if text[0] == "{":
            if text[-1] != "}":
                raise ToolError("a bundle without its '}'", hint="a bundle is on one line")
            self._bundle([part.strip() for part in text[1:-1].split(";")])
        elif match := _EQUATE.fullmatch(text):
            self._equate(match[1], match[2])
        elif text[0] == ".":
            self._directive(text)
        elif self.is_dual:
            self._alone(parse_operation(text, self._value))
        else:
            self._single(parse_operation(text, self._value))

    def _directive(self, text: str) -> None:
        match = re.match(r"\.(\w+)\s*", text)
        word, rest = (match[1], text[match.end() :]) if match else ("", text)
        if word in _SIZES:
            self._on_data(_SIZES[word], rest)
        elif word in self.directives:
            self.directives[word](rest)
        elif word not in _IGNORED and not word.startswith("cfi_"):
            raise ToolError(f"unknown directive '.{word}'")

    def _label(self, name: str) -> None:
        if name in self.labels:
            raise ToolError(f"'{name}' is defined twice", path=self.name, line=self.line)
        self.labels.add(name)
        piece = self.draft.last()
        self.draft.labels[name] = (len(self.draft.pieces) - 1, len(piece.data))

    # ---- directives ------------------------------------------------------------------------------

    def _section(self, name: str, flags: str) -> Draft:
        if name not in self.drafts:
            is_code = name.startswith(".text") or "x" in flags
            is_data = ".dp" in name or "w" in flags
            kind: Kind = "code" if is_code else "data" if is_data else "const"
            section = Section(name, kind, align=4 if is_code else 1, is_zero=".bss" in name)
            self.drafts[name] = Draft(section)
        return self.drafts[name]

    def _open(self, name: str, flags: str) -> None:
        self.draft = self._section(name, flags)

    def _on_section(self, rest: str) -> None:
        words = [word.strip().strip('"') for word in rest.split(",")]
        self._open(words[0], words[1] if len(words) > 1 else "")

    def _on_push(self, rest: str) -> None:
        self.outer.append(self.draft)
        self._on_section(rest)

    def _on_pop(self, _: str) -> None:
        if not self.outer:
            raise ToolError("no .pushsection before it")
        self.draft = self.outer.pop()

    def _on_globl(self, rest: str) -> None:
        self.globals.update(word.strip() for word in rest.split(","))

    def _on_weak(self, rest: str) -> None:
        self._on_globl(rest)
        self.weak.update(word.strip() for word in rest.split(","))

    def _on_set(self, rest: str) -> None:
        name, _, value = rest.partition(",")
        self._equate(name.strip(), value)

    def _equate(self, name: str, value: str) -> None:
        if not name.endswith(_RESOURCES):
            self.equates[name] = self._value(value)

    def _on_issue_mode(self, rest: str) -> None:
        if rest.strip() not in ("single", "dual"):
            raise ToolError(f"unknown issue mode '{rest}'", hint="single or dual")
        self.is_dual = rest.strip() == "dual"

    def _align(self, to: int) -> None:
        if to & (to - 1) or to <= 0:
            raise ToolError(f"{to} is not a power of 2")
        self.draft.section.align = max(self.draft.section.align, to)
        self.draft.pieces.append(Align(to))

    def _on_space(self, rest: str) -> None:
        count, _, fill = rest.partition(",")
        value = self._number(fill) if fill.strip() else 0
        self.draft.last().data += bytes([value & 255]) * self._number(count)

    def _on_fill(self, rest: str) -> None:
        count, size, value = ([*rest.split(","), "1", "0"][k] for k in range(3))
        item = (self._number(value) & 0xFFFFFFFF).to_bytes(8, "little")[: self._number(size)]
        self.draft.last().data += item * self._number(count)

    def _on_ascii(self, rest: str, end: bytes) -> None:
        for match in _STRING.finditer(rest):
            self.draft.last().data += _unescape(match[1]) + end

    def _on_base64(self, rest: str) -> None:
        try:
            for match in _STRING.finditer(rest):
                self.draft.last().data += base64.b64decode(match[1], validate=True)
        except ValueError:
            raise ToolError("this is not base64") from None

    def _on_comm(self, rest: str) -> None:
        name, size, *align = (word.strip() for word in rest.split(","))
        self.globals.add(name)
        self.common[name] = size, align[0] if align else "4"

    def _place_commons(self) -> None:
        for name, (size, align) in self.common.items():
            if name not in self.labels:
                self._open(f".dp.bss.{name}", "awd")
                self._align(self._number(align))
                self._label(name)
                self._on_space(size)

    def _on_data(self, size: int, rest: str) -> None:
        piece = self.draft.last()
        for word in rest.split(","):
            value = self._value(word)
            if value.terms:
                piece.sums.append((len(piece.data), size, value))
            piece.data += (value.constant & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _on_jump_table(self, rest: str) -> None:
        targets = [single_symbol(self._value(word)) for word in rest.split(",")]
        (branch,) = instructions()["bu", "I"]
        self.draft.pieces.append(Table(branch, targets, [False] * len(targets)))

    def _on_long_jump_table(self, rest: str) -> None:
        (branch,) = instructions()["bu", "I"]
        for word in rest.split(","):
            target = single_symbol(self._value(word))
            self.draft.pieces.append(Jump(branch, [0], target, self.is_dual, is_long=True))

    # ---- numbers ---------------------------------------------------------------------------------

    def _value(self, text: str) -> Sum:
        value = parse(text)
        for _ in range(16):
            known = [name for name in value.terms if name in self.equates]
            if not known:
                return value
            for name in known:
                times = value.terms[name]
                value = value.plus(Sum(0, {name: 1}), -times).plus(self.equates[name], times)
        raise ToolError(f"'{text}' is defined by itself")

    def _number(self, text: str) -> int:
        value = self._value(text)
        if value.terms:
            raise ToolError(f"'{text.strip()}' is not a constant")
        return value.constant

    # ---- instructions ----------------------------------------------------------------------------

    def _single(self, op: Operation) -> None:
        """Emits an instruction in single issue."""
        if op.symbol is not None:
            self._with_symbol(op)
        elif op.shorts:
            self.draft.last().data += encode_short(op.shorts[0], op.values).to_bytes(2, "little")
        else:
            self.draft.last().data += encode_long(op.longs[0], op.values).to_bytes(4, "little")

    def _alone(self, op: Operation) -> None:
        """Emits an instruction that has no partner, in dual issue."""
        if op.symbol is not None:
            self._with_symbol(op)
        elif op.longs:
            self.draft.last().data += encode_long(op.longs[0], op.values).to_bytes(4, "little")
        else:
            half = encode_short(op.shorts[0], op.values)
            self._put_halves(*((NOP, half) if op.lane == "m" else (half, NOP)))

    def _with_symbol(self, op: Operation) -> None:
        """Emits an instruction whose number is the address of a symbol, or the distance to it."""
        it, (name, addend) = op.longs[0], op.single_symbol()
        if op.is_jump:
            self.draft.pieces.append(Jump(it, op.values, (name, addend), self.is_dual, self.is_dual))
            return
        piece = self.draft.last()
        piece.fixups.append(
            Fixup(len(piece.data), "number" if it.mnemonic == "ldc" else "pool", name, addend)
        )
        piece.data += encode_long(it, op.values).to_bytes(4, "little")

    def _bundle(self, texts: list[str]) -> None:
        """Emits a bundle of one or two statements. An empty statement is a nop."""
        if not self.is_dual:
            raise ToolError("a bundle in single issue", hint="write .issue_mode dual")
        if len(texts) > 2:
            raise ToolError("a bundle has two instructions")
        ops = [parse_operation(text, self._value) for text in texts if text]
        if not ops:
            self._put_halves(NOP, NOP)
        elif len(ops) == 1:
            self._alone(ops[0])
        else:
            self._pair(*ops)

    def _pair(self, first: Operation, second: Operation) -> None:
        for op in (first, second):
            if not op.shorts:
                raise ToolError(f"'{op.text}' has 32 bits and cannot share a bundle")
            if op.symbol is not None and not op.is_jump:
                raise ToolError(f"'{op.text}' needs 32 bits for its symbol and cannot share a bundle")
        if first.lane == second.lane and first.lane != "e":
            raise ToolError("both instructions need the same half of the bundle")
        is_swapped = first.lane == "m" or second.lane == "r"
        low, high = (second, first) if is_swapped else (first, second)
        piece = self.draft.last()
        offset = len(piece.data)
        for op, at in ((low, offset), (high, offset + 2)):
            if op.symbol is not None:
                piece.fixups.append(Fixup(at, "short", *op.single_symbol(), 4, offset + 4))
        self._put_halves(encode_short(low.shorts[0], low.values), encode_short(high.shorts[0], high.values))

    def _put_halves(self, low: int, high: int) -> None:
        self.draft.last().data += (low | high << 16).to_bytes(4, "little")

    # ---- the object ------------------------------------------------------------------------------

    def _finish(self) -> Object:
        drafts = [it for it in self.drafts.values() if not it.section.name.startswith(_LEFT_OUT)]
        made = Object(self.name)
        for draft in drafts:
            draft.lay_out(self.weak)
            if draft.section.bytes or draft.labels:
                made.sections.append(draft.section)
        for draft in drafts:
            draft.resolve(drafts)
            for name, place in draft.places.items():
                into = made.globals if name in self.globals else made.locals
                into[name] = Symbol(draft.section, place, name in self.weak)
        for name, value in self.equates.items():
            if not value.terms:
                made.locals.setdefault(name, Symbol(None, value.constant))
        return made


def _cuts(line: str) -> list[int]:
    """Returns the positions of the semicolons that separate the statements of a line: those outside braces
    and texts.
    """
    cuts, depth, is_text = [], 0, False
    for at, char in enumerate(line):
        if char == '"':
            is_text = not is_text
        elif not is_text:
            depth += (char == "{") - (char == "}")
            if char == ";" and depth == 0:
                cuts.append(at)
    return cuts


def _unescape(text: str) -> bytes:
    out, at = bytearray(), 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode("latin-1", "replace")
            at += 1
        elif match := re.match(r"[0-7]{1,3}", text[at + 1 :]):
            out.append(int(match[0], 8) & 255)
            at += 1 + len(match[0])
        else:
            out.append(_ESCAPES.get(text[at + 1], ord(text[at + 1])))
            at += 2
    return bytes(out)
