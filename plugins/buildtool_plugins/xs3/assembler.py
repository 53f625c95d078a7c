"""Assembles XS3 text: what clang's XCore back end writes, and `.S` files after the C preprocessor.

First all statements become pieces: bytes, alignments, branches. A branch of single issue has 16 bits until its
target turns out to be too far; then bytes and fixups are written. In dual issue (`.issue_mode dual`) every piece
has 32 bits: a bundle, or a long instruction. A statement alone takes its long form if it has one, as XMOS's
assembler does; otherwise it shares its bundle with a nop. Of two that could be in either half, the first is low.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.encoding import NOP, REGISTERS, Instruction, encode_long, encode_short, instructions
from buildtool_plugins.xs3.expressions import Sum, parse
from buildtool_plugins.xs3.objects import Fixup, Object, Section, Symbol

JUMPS = ("bt", "bf", "bu", "bl", "ldap")
_LABEL = re.compile(r"\s*([A-Za-z_.$][\w.$]*):(?!:)")
_EQUATE = re.compile(r"([A-Za-z_.$][\w.$]*)\s*=(?!=)\s*(.*)")
_INDEXED = re.compile(r"(\w+)\s*\[(.*)\]")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|(?://|#).*')
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "v": 11}
_SIZES = {"byte": 1, "short": 2, "hword": 2, "half": 2, "value": 2, "long": 4, "word": 4, "int": 4, "quad": 8}
_IGNORED = frozenset(
    "file ident type size cc_top cc_bottom loc addrsig addrsig_sym call add_to_set extern max_reduce syntax"
    " assert local protected hidden internal sleb128 uleb128 cfi_startproc cfi_endproc cfi_def_cfa_offset"
    " cfi_offset cfi_sections cfi_def_cfa cfi_restore cfi_adjust_cfa_offset issue_slots".split()
)


@dataclass
class _Align:
    to: int


@dataclass
class _Jump:
    """A branch or LDAP whose target is a symbol."""

    instruction: Instruction
    values: list[int]  # in the text's order; the target's is 0
    target: Sum
    is_dual: bool
    is_long: bool  # always in dual issue; in single issue it may grow

    @property
    def size(self) -> int:
        return 4 if self.is_long else 2


@dataclass
class _Bytes:
    data: bytearray = field(default_factory=bytearray)
    fixups: list[Fixup] = field(default_factory=list)
    sums: list[tuple[int, int, Sum]] = field(default_factory=list)  # offset, size, value


@dataclass
class _Table:
    """The branches of a jump table, 16 bits each; one that does not reach goes by a long one behind the table."""

    instruction: Instruction
    targets: list[tuple[str, int]]
    is_far: list[bool]

    @property
    def size(self) -> int:
        return 2 * len(self.targets) + 4 * sum(self.is_far)


_Piece = _Align | _Jump | _Bytes | _Table


@dataclass
class _Draft:
    section: Section
    pieces: list[_Piece] = field(default_factory=list)
    labels: dict[str, tuple[int, int]] = field(default_factory=dict)  # name -> piece, offset in it

    def last(self) -> _Bytes:
        """Returns the bytes at the end, to add to."""
        if not self.pieces or not isinstance(self.pieces[-1], _Bytes):
            self.pieces.append(_Bytes())
        piece = self.pieces[-1]
        assert isinstance(piece, _Bytes)
        return piece


@dataclass(frozen=True)
class _Operation:
    """A statement's instruction: the forms that its operands fit, and the number that is a symbol's."""

    shorts: list[Instruction]
    longs: list[Instruction]
    values: list[int]
    symbol: Sum | None

    @property
    def lane(self) -> str:
        return next((trait for trait in "mrel" if trait in self.shorts[0].traits), "l") if self.shorts else "l"


def assemble(text: str, name: str = "text") -> Object:
    """Returns the object; raises ToolError with the line."""
    return _Assembler(name).run(text)


class _Assembler:
    def __init__(self, name: str) -> None:
        self.name = name
        self.drafts: dict[str, _Draft] = {}
        self.equates: dict[str, Sum] = {}
        self.globals: set[str] = set()
        self.weak: set[str] = set()
        self.common: dict[str, tuple[int, int]] = {}
        self.is_dual = False
        self.line = 0
        self.previous: list[_Draft] = []
        self.draft = self._section(".text", "")
        self.directives: dict[str, Callable[[str], None]] = {
            "text": lambda _: self._open(".text", ""),
            "data": lambda _: self._open(".dp.data", "awd"),
            "bss": lambda _: self._open(".dp.bss", "awd"),
            "section": self._on_section,
            "pushsection": self._on_push,
            "popsection": lambda _: setattr(self, "draft", self.previous.pop()),
            "globl": self._on_globl, "global": self._on_globl, "weak": self._on_weak,
            "set": self._on_set, "linkset": self._on_set, "equ": self._on_set,
            "issue_mode": self._on_issue_mode,
            "align": lambda rest: self._align(self._number(rest.split(",")[0])),
            "balign": lambda rest: self._align(self._number(rest.split(",")[0])),
            "p2align": lambda rest: self._align(1 << self._number(rest.split(",")[0])),
            "space": self._on_space, "skip": self._on_space, "zero": self._on_space,
            "fill": self._on_fill,
            "ascii": lambda rest: self._on_ascii(rest, b""),
            "asciz": lambda rest: self._on_ascii(rest, b"\0"),
            "asciiz": lambda rest: self._on_ascii(rest, b"\0"),
            "string": lambda rest: self._on_ascii(rest, b"\0"),
            "comm": self._on_comm, "lcomm": self._on_comm,
            "jmptable": lambda rest: self._on_jump_table(rest, is_long=False),
            "jmptable32": lambda rest: self._on_jump_table(rest, is_long=True),
        }  # fmt: skip

    def run(self, text: str) -> Object:
        """Returns the object of a whole text."""
        if "/*" in text:
            text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
        for self.line, line in enumerate(text.splitlines(), 1):
            if line.startswith("\t.byte\t") and line[7:].isdigit():  # by far the most lines of large constants
                self.draft.last().data.append(int(line[7:]))
                continue
            for statement in self._statements(line):
                try:
                    self._statement(statement)
                except ToolError as error:
                    raise ToolError(f"{self.name}:{self.line}: {error}: '{statement}'", hint=error.hint) from None
        for symbol, (size, align) in self.common.items():
            if not any(symbol in draft.labels for draft in self.drafts.values()):
                self._open(f".dp.bss.{symbol}", "awd")
                self._align(align)
                self._label(symbol)
                self._on_space(str(size))
        return self._finish()

    def _fail(self, text: str, hint: str = "") -> NoReturn:
        raise ToolError(text, hint=hint)

    # ---- statements --------------------------------------------------------------------------------

    def _statements(self, line: str) -> Iterator[str]:
        if "#" in line or "/" in line:
            line = _COMMENT.sub(lambda match: match[1] or "", line)
        while match := _LABEL.match(line):
            self._label(match[1])
            line = line[match.end() :]
        if ";" not in line:
            if line := line.strip():
                yield line
            return
        start = depth = 0
        is_text = False
        for at, char in enumerate(line):
            if char == '"':
                is_text = not is_text
            elif not is_text:
                depth += (char == "{") - (char == "}")
                if char == ";" and depth == 0:
                    yield from self._statements(line[start:at])
                    start = at + 1
        if line[start:] != line:
            yield from self._statements(line[start:])
        elif line.strip():
            yield line.strip()

    def _statement(self, text: str) -> None:
        if text[0] == "{":
            if text[-1] != "}":
                self._fail("a bundle without its '}'", "a bundle is on one line")
            self._bundle([part.strip() for part in text[1:-1].split(";")])
        elif match := _EQUATE.fullmatch(text):
            self._equate(match[1], match[2])
        elif text[0] == ".":
            self._directive(text)
        elif self.is_dual:
            self._bundle([text])
        else:
            self._single(self._operation(text), text)

    def _directive(self, text: str) -> None:
        match = re.match(r"\.(\w+)\s*", text)
        assert match
        word, rest = match[1], text[match.end() :]
        if word in _SIZES:
            self._on_data(_SIZES[word], rest)
        elif word in self.directives:
            self.directives[word](rest)
        elif word not in _IGNORED:
            self._fail(f"unknown directive '.{word}'")

    # ---- directives --------------------------------------------------------------------------------

    def _section(self, name: str, flags: str) -> _Draft:
        draft = self.drafts.get(name)
        if draft is None:
            is_code = name.startswith(".text") or "x" in flags
            kind = "code" if is_code else "data" if ".dp" in name or "d" in flags or "w" in flags else "const"
            if name.startswith((".note", ".debug", ".comment")):
                kind = "const"
            draft = self.drafts[name] = _Draft(Section(name, kind, align=4 if is_code else 1))  # type: ignore[arg-type]
            draft.section.is_zero = ".bss" in name
        return draft

    def _open(self, name: str, flags: str) -> None:
        self.draft = self._section(name, flags)

    def _on_section(self, rest: str) -> None:
        words = [word.strip().strip('"') for word in rest.split(",")]
        self._open(words[0], words[1] if len(words) > 1 else "")

    def _on_push(self, rest: str) -> None:
        self.previous.append(self.draft)
        self._on_section(rest)

    def _on_globl(self, rest: str) -> None:
        self.globals.update(word.strip() for word in rest.split(","))

    def _on_weak(self, rest: str) -> None:
        self._on_globl(rest)
        self.weak.update(word.strip() for word in rest.split(","))

    def _on_set(self, rest: str) -> None:
        name, _, value = rest.partition(",")
        self._equate(name.strip(), value)

    def _equate(self, name: str, value: str) -> None:
        try:
            self.equates[name] = self._value(value)
        except ToolError:
            if "$" not in value:  # stack sizes are maxima of others, in an operator of their own
                raise

    def _on_issue_mode(self, rest: str) -> None:
        if rest.strip() not in ("single", "dual"):
            self._fail(f"unknown issue mode '{rest}'", "single or dual")
        self.is_dual = rest.strip() == "dual"

    def _align(self, to: int) -> None:
        if to & (to - 1) or to <= 0:
            self._fail(f"{to} is not a power of 2")
        self.draft.section.align = max(self.draft.section.align, to)
        self.draft.pieces.append(_Align(to))

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

    def _on_comm(self, rest: str) -> None:
        words = [word.strip() for word in rest.split(",")]
        self.globals.add(words[0])
        self.common[words[0]] = (self._number(words[1]), self._number(words[2]) if len(words) > 2 else 4)

    def _on_data(self, size: int, rest: str) -> None:
        piece = self.draft.last()
        for word in rest.split(","):
            value = self._value(word)
            if value.terms:
                piece.sums.append((len(piece.data), size, value))
            piece.data += (value.constant & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _on_jump_table(self, rest: str, is_long: bool) -> None:
        targets = [word.strip() for word in rest.split(",")]
        it = instructions()["bu", "I"][0]
        if not is_long:
            places = [self._one_symbol(self._value(target)) for target in targets]
            self.draft.pieces.append(_Table(it, places, [False] * len(targets)))
            return
        for target in targets:
            self.draft.pieces.append(_Jump(it, [0], self._value(target), self.is_dual, is_long=True))

    def _label(self, name: str) -> None:
        if any(name in draft.labels for draft in self.drafts.values()):
            raise ToolError(f"{self.name}:{self.line}: '{name}' is defined twice")
        piece = self.draft.last()
        self.draft.labels[name] = (len(self.draft.pieces) - 1, len(piece.data))

    # ---- numbers -----------------------------------------------------------------------------------

    def _value(self, text: str) -> Sum:
        value = parse(text)
        for _ in range(16):
            known = [name for name in value.terms if name in self.equates]
            if not known:
                return value
            for name in known:
                times = value.terms[name]
                value = value.plus(Sum(0, {name: 1}), -times).plus(self.equates[name], times)
        self._fail(f"'{text}' is defined by itself")

    def _number(self, text: str) -> int:
        value = self._value(text)
        if value.terms:
            self._fail(f"'{text.strip()}' is not a constant")
        return value.constant

    # ---- instructions ------------------------------------------------------------------------------

    def _operation(self, text: str) -> _Operation:
        """Parses an instruction; raises ToolError where no encoding takes its operands."""
        mnemonic, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        mnemonic = mnemonic.lower()
        operands = [word.strip() for word in rest.split(",")] if rest.strip() else []
        if mnemonic == "mov" and len(operands) == 2:
            mnemonic, operands = "add", [*operands, "0"]
        shapes, values, symbol = [], [], None
        for operand in operands:
            shape, value = self._operand(operand)
            shapes.append(shape)
            if isinstance(value, Sum):
                if value.terms and symbol is not None:
                    self._fail("two symbols in one instruction")
                symbol = value if value.terms else symbol
                value = 0 if value.terms else value.constant
            if value is not None:
                values += [value] if isinstance(value, int) else value
        shape = ",".join(shapes)
        candidates = instructions().get((mnemonic, shape), ())
        if not candidates:
            known = sorted({key[1] for key in instructions() if key[0] == mnemonic})
            if not known:
                self._fail(f"unknown instruction '{mnemonic}'")
            self._fail(f"'{mnemonic}' has no form {shape or 'without operands'}", f"it has {'; '.join(known)}")
        shorts = [i for i in candidates if i.is_short and i.fits(values)]
        longs = [i for i in candidates if (not i.is_short or i.format in ("RU6", "U6", "U10")) and i.fits(values, True)]
        if not shorts and not longs:
            self._fail(f"the operands fit no form of '{mnemonic}'")
        return _Operation(shorts, longs, values, symbol)

    def _operand(self, text: str) -> tuple[str, int | Sum | list[int] | None]:
        if text in REGISTERS:
            return "R", REGISTERS[text]
        if match := _INDEXED.fullmatch(text):
            base, index = match[1], match[2].strip()
            is_pool = base in ("sp", "dp", "cp")
            if not is_pool and base not in REGISTERS:
                self._fail(f"'{base}' is not a register")
            shape = base if is_pool else "R"
            head = [] if is_pool else [REGISTERS[base]]
            sign = "-" if index[:1] == "-" and index[1:].strip() in REGISTERS else ""
            if index.removeprefix(sign).strip() in REGISTERS:
                return f"{shape}[{sign}R]", [*head, REGISTERS[index.removeprefix(sign).strip()]]
            value = self._value(index)
            if value.terms:
                if head:
                    self._fail(f"'{index}' is not a constant")
                return f"{shape}[I]", value
            if value.constant < 0:
                return f"{shape}[-I]", [*head, -value.constant]
            return f"{shape}[I]", [*head, value.constant]
        if text in ("id", "ed", "et", "kep", "ksp"):
            return text, None
        return "I", self._value(text)

    def _single(self, op: _Operation, text: str) -> None:
        if op.symbol is not None and text.split()[0].lower() in JUMPS:
            self._jump(op)
        elif op.symbol is not None:
            self._emit_symbol(op)
        elif op.shorts:
            self.draft.last().data += encode_short(op.shorts[0], op.values).to_bytes(2, "little")
        else:
            self.draft.last().data += encode_long(op.longs[0], op.values).to_bytes(4, "little")

    def _emit_symbol(self, op: _Operation) -> None:
        """Emits a long instruction whose number is a symbol's address, or its distance from cp or dp."""
        assert op.symbol is not None
        it = op.longs[0]
        name, addend = self._one_symbol(op.symbol)
        piece = self.draft.last()
        form = "number" if it.mnemonic == "ldc" else "pool"
        piece.fixups.append(Fixup(len(piece.data), form, name, addend))  # type: ignore[arg-type]
        piece.data += encode_long(it, op.values).to_bytes(4, "little")

    def _one_symbol(self, value: Sum) -> tuple[str, int]:
        if len(value.terms) != 1 or next(iter(value.terms.values())) != 1:
            self._fail("an instruction takes one symbol and a constant")
        return next(iter(value.terms)), value.constant

    def _jump(self, op: _Operation) -> None:
        assert op.symbol is not None
        self.draft.pieces.append(_Jump(op.longs[0], op.values, op.symbol, self.is_dual, self.is_dual))

    def _bundle(self, texts: list[str]) -> None:
        """Emits the bundle of one or two statements; an empty one is a nop."""
        if not self.is_dual:
            self._fail("a bundle in single issue", "write .issue_mode dual")
        if len(texts) > 2:
            self._fail("a bundle has two instructions")
        ops = [(self._operation(text), text) for text in texts if text]
        if not ops:
            self._put_halves(NOP, NOP)
            return
        if len(ops) == 1:
            op, text = ops[0]
            if op.symbol is not None and text.split()[0].lower() in JUMPS:
                self._jump(op)
            elif op.symbol is not None:
                self._emit_symbol(op)
            elif op.longs:
                self.draft.last().data += encode_long(op.longs[0], op.values).to_bytes(4, "little")
            else:
                half = encode_short(op.shorts[0], op.values)
                self._put_halves(*((NOP, half) if op.lane == "m" else (half, NOP)))
            return
        self._pair(ops)

    def _pair(self, ops: list[tuple[_Operation, str]]) -> None:
        for op, text in ops:
            if not op.shorts:
                self._fail(f"'{text}' has 32 bits and cannot share a bundle")
            if op.symbol is not None and text.split()[0].lower() not in JUMPS:
                self._fail(f"'{text}' needs 32 bits for its symbol and cannot share a bundle")
        (first, _), (second, _) = ops
        if first.lane == second.lane and first.lane != "e":
            self._fail("both instructions need the same half of the bundle")
        is_swapped = first.lane == "m" or second.lane == "r"
        low, high = (second, first) if is_swapped else (first, second)
        offset = len(self.draft.last().data)
        piece = self.draft.last()
        for op, at in ((low, offset), (high, offset + 2)):
            if op.symbol is not None:
                name, addend = self._one_symbol(op.symbol)
                piece.fixups.append(Fixup(at, "short", name, addend, 4, offset + 4))
        self._put_halves(encode_short(low.shorts[0], low.values), encode_short(high.shorts[0], high.values))

    def _put_halves(self, low: int, high: int) -> None:
        self.draft.last().data += (low | high << 16).to_bytes(4, "little")

    # ---- layout ------------------------------------------------------------------------------------

    def _finish(self) -> Object:
        made = Object(self.name)
        for draft in self.drafts.values():
            if draft.section.name.startswith((".note", ".debug", ".comment")):
                continue
            self._lay_out(draft)
            if draft.section.bytes or draft.labels:
                made.sections.append(draft.section)
        for draft in self.drafts.values():
            self._resolve_sums(draft)
        for draft in self.drafts.values():
            for name in draft.labels:
                symbol = Symbol(draft.section, self.places[name], name in self.weak)
                (made.globals if name in self.globals else made.locals)[name] = symbol
        for name, value in self.equates.items():
            if not value.terms and not name.endswith((".globound", ".nstackwords", ".maxcores", ".maxtimers", ".maxchanends")):
                made.locals.setdefault(name, Symbol(None, value.constant))
        return made

    places: dict[str, int]

    def _positions(self, draft: _Draft) -> list[int]:
        """Returns the offset of each piece, and of the end."""
        at, starts = 0, []
        for piece in draft.pieces:
            if isinstance(piece, _Align):
                starts.append(at)
                at += -at % piece.to
            else:
                starts.append(at)
                at += len(piece.data) if isinstance(piece, _Bytes) else piece.size
        return [*starts, at]

    def _lay_out(self, draft: _Draft) -> None:
        jumps = [(k, piece) for k, piece in enumerate(draft.pieces) if isinstance(piece, (_Jump, _Table))]
        while True:
            starts = self._positions(draft)
            if not any([self._grow(draft, piece, starts, starts[k]) for k, piece in jumps]):
                break
        if not hasattr(self, "places"):
            self.places = {}
        self.places |= {name: starts[k] + offset for name, (k, offset) in draft.labels.items()}
        self._write(draft, starts)

    def _grow(self, draft: _Draft, piece: _Jump | _Table, starts: list[int], at: int) -> bool:
        """Lengthens branches that do not reach; whether there were any."""
        if isinstance(piece, _Jump):
            if piece.is_long:
                return False
            limit = 1023 if piece.instruction.format == "U10" else 63
            target = self._one_symbol(piece.target)
            piece.is_long = not self._reaches(draft, target, starts, at + piece.size, 2 * limit)
            return piece.is_long
        far = [
            is_far or not self._reaches(draft, target, starts, at + 2 * k + 2, 63 * 2)
            for k, (target, is_far) in enumerate(zip(piece.targets, piece.is_far, strict=True))
        ]
        grown, piece.is_far = far != piece.is_far, far
        return grown

    def _reaches(self, draft: _Draft, target: tuple[str, int], starts: list[int], after: int, limit: int) -> bool:
        """Whether a branch's target is in the section and at most `limit` bytes away."""
        name, addend = target
        if name not in draft.labels or name in self.weak:
            return False
        k, offset = draft.labels[name]
        return abs(starts[k] + offset + addend - after) <= limit

    def _write(self, draft: _Draft, starts: list[int]) -> None:
        section, data = draft.section, draft.section.data
        if section.is_zero:
            section.size = starts[-1]
            return
        for piece, start in zip(draft.pieces, starts, strict=False):
            assert len(data) == start
            if isinstance(piece, _Align):
                gap = -start % piece.to
                fill = b"\xff\x17" if section.kind == "code" and gap % 2 == 0 else b"\0\0"
                data += (fill * (gap // 2 + 1))[:gap]
            elif isinstance(piece, _Jump):
                self._write_jump(section, piece, start)
            elif isinstance(piece, _Table):
                self._write_table(section, piece, start)
            else:
                for fixup in piece.fixups:
                    after = fixup.after + start
                    section.fixups.append(
                        Fixup(fixup.offset + start, fixup.form, fixup.symbol, fixup.addend, fixup.scale, after)
                    )
                data += piece.data

    def _write_jump(self, section: Section, jump: _Jump, start: int) -> None:
        name, addend = self._one_symbol(jump.target)
        if jump.is_long:
            section.fixups.append(Fixup(start, "long", name, addend, 4 if jump.is_dual else 2))
            section.data += encode_long(jump.instruction, jump.values).to_bytes(4, "little")
        else:
            section.fixups.append(Fixup(start, "short", name, addend, 2, start + 2))
            section.data += encode_short(jump.instruction, jump.values).to_bytes(2, "little")

    def _write_table(self, section: Section, table: _Table, start: int) -> None:
        stub = start + 2 * len(table.targets)
        short, long = encode_short(table.instruction, [0]), encode_long(table.instruction, [0])
        for k, (name, addend) in enumerate(table.targets):
            at = start + 2 * k
            if table.is_far[k]:
                section.data += (short | (stub - at - 2) // 2).to_bytes(2, "little")
                section.fixups.append(Fixup(stub, "long", name, addend))
                stub += 4
            else:
                section.fixups.append(Fixup(at, "short", name, addend, 2, at + 2))
                section.data += short.to_bytes(2, "little")
        section.data += long.to_bytes(4, "little") * sum(table.is_far)

    def _resolve_sums(self, draft: _Draft) -> None:
        starts = self._positions(draft)
        for piece, start in zip(draft.pieces, starts, strict=False):
            if not isinstance(piece, _Bytes):
                continue
            for offset, size, value in piece.sums:
                value = self._value_of_labels(value)
                at = offset + start
                if value.terms:
                    name, addend = self._one_symbol(value)
                    if size != 4:
                        self._fail(f"the address of '{name}' takes 4 bytes, not {size}")
                    draft.section.fixups.append(Fixup(at, "word", name, addend))
                else:
                    number = value.constant & ((1 << 8 * size) - 1)
                    draft.section.data[at : at + size] = number.to_bytes(size, "little")

    def _value_of_labels(self, value: Sum) -> Sum:
        """Returns the sum with the differences of labels of one section as constants."""
        for section in self.drafts.values():
            inside = [name for name in value.terms if name in section.labels]
            if inside and sum(value.terms[name] for name in inside) == 0:
                for name in inside:
                    times = value.terms[name]
                    value = value.plus(Sum(-self.places[name], {name: 1}), -times)
        return value


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
