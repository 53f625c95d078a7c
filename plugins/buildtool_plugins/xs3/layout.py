"""Lays out a section while it is assembled: which branches are long, where labels lie, and the bytes.

A section consists of pieces. A branch in single issue has 16 bits until its target turns out to be too far
away. The sizes of other pieces do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.encoding import Instruction, encode_long, encode_short
from buildtool_plugins.xs3.expressions import Sum
from buildtool_plugins.xs3.objects import Fixup, Section
from buildtool_plugins.xs3.operations import single_symbol

NOPS = b"\xff\x17"
_SHORT = {"U10": 2 * 1023}  # bytes that a short branch reaches, by format; for others see _SHORT_RU6
_SHORT_RU6 = 2 * 63


@dataclass
class Align:
    """A piece that makes the next piece begin at a multiple of `to` bytes."""

    to: int


@dataclass
class Jump:
    """A piece with a branch, or an LDAP, whose target is a symbol and a number to add."""

    instruction: Instruction
    values: list[int]  # in the text's order; the target's is 0
    target: tuple[str, int]
    is_dual: bool
    is_long: bool  # always in dual issue; in single issue it may grow

    @property
    def size(self) -> int:
        """The bytes that the piece takes at present."""
        return 4 if self.is_long else 2


@dataclass
class Table:
    """A piece with the branches of a jump table, 16 bits each. A branch that does not reach its target goes
    to a long branch after the table.
    """

    instruction: Instruction
    targets: list[tuple[str, int]]
    is_far: list[bool]

    @property
    def size(self) -> int:
        """The bytes that the piece takes at present."""
        return 2 * len(self.targets) + 4 * sum(self.is_far)


@dataclass
class Bytes:
    """A piece with bytes, their relocations (fixups), and numbers that depend on labels, as (offset, size,
    value).
    """

    data: bytearray = field(default_factory=bytearray)
    fixups: list[Fixup] = field(default_factory=list)
    sums: list[tuple[int, int, Sum]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)


Piece = Align | Jump | Table | Bytes


@dataclass
class Draft:
    """A section that is being assembled.

    `labels`: the index of each label's piece, and its offset there.
    `places`: the labels' offsets in the section, known after `lay_out`.
    """

    section: Section
    pieces: list[Piece] = field(default_factory=list)
    labels: dict[str, tuple[int, int]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def last(self) -> Bytes:
        """Returns the last piece, to which bytes can be added. If it is not a piece of bytes, a new one is
        appended.
        """
        if not self.pieces or not isinstance(self.pieces[-1], Bytes):
            self.pieces.append(Bytes())
        piece = self.pieces[-1]
        assert isinstance(piece, Bytes)
        return piece

    def starts(self) -> list[int]:
        """Returns the offset of each piece at present, and the section's size."""
        at, starts = 0, []
        for piece in self.pieces:
            starts.append(at)
            at += -at % piece.to if isinstance(piece, Align) else piece.size
        return [*starts, at]

    def lay_out(self, weak: set[str]) -> None:
        """Decides which branches are long, and writes the section's bytes. Branches to labels in `weak` are
        always long.
        """
        growing = [(k, piece) for k, piece in enumerate(self.pieces) if isinstance(piece, (Jump, Table))]
        grown = True
        while grown:
            starts, grown = self.starts(), False
            for k, piece in growing:
                grown |= self._grow(piece, starts, starts[k], weak)
        self.places = {name: starts[k] + offset for name, (k, offset) in self.labels.items()}
        self._write(starts)

    def _grow(self, piece: Jump | Table, starts: list[int], at: int, weak: set[str]) -> bool:
        """Makes those branches of a piece long that do not reach their target. Returns whether there were
        any.

        `starts` are the offsets from `Draft.starts`, `at` is the offset of the piece, and branches to labels
        in `weak` are always long.
        """
        if isinstance(piece, Jump):
            if piece.is_long:
                return False
            limit = _SHORT.get(piece.instruction.format, _SHORT_RU6)
            piece.is_long = not self._reaches(piece.target, starts, at + piece.size, limit, weak)
            return piece.is_long
        far = [
            is_far or not self._reaches(target, starts, at + 2 * k + 2, _SHORT_RU6, weak)
            for k, (target, is_far) in enumerate(zip(piece.targets, piece.is_far, strict=True))
        ]
        grown, piece.is_far = far != piece.is_far, far
        return grown

    def _reaches(
        self, target: tuple[str, int], starts: list[int], after: int, limit: int, weak: set[str]
    ) -> bool:
        """Whether a branch's target is in this section, and at most `limit` bytes away from the offset
        `after`.
        """
        name, addend = target
        if name not in self.labels or name in weak:
            return False
        k, offset = self.labels[name]
        return abs(starts[k] + offset + addend - after) <= limit

    def _write(self, starts: list[int]) -> None:
        section, data = self.section, self.section.data
        if section.is_zero:
            section.size = starts[-1]
            return
        for piece, start in zip(self.pieces, starts, strict=False):
            if isinstance(piece, Align):
                gap = -start % piece.to
                fill = NOPS if section.kind == "code" and gap % 2 == 0 else b"\0\0"
                data += (fill * (gap // 2 + 1))[:gap]
            elif isinstance(piece, Jump):
                _write_jump(section, piece, start)
            elif isinstance(piece, Table):
                _write_table(section, piece, start)
            else:
                for f in piece.fixups:
                    moved = (f.form, f.symbol, f.addend, f.scale, f.after + start)
                    section.fixups.append(Fixup(f.offset + start, *moved))
                data += piece.data

    def resolve(self, drafts: list[Draft]) -> None:
        """Writes the numbers that depend on labels of any of the drafts. Raises ToolError for one that is not
        a symbol's address plus a constant.
        """
        for piece, start in zip(self.pieces, self.starts(), strict=False):
            for offset, size, value in piece.sums if isinstance(piece, Bytes) else ():
                known = _without_distances(value, drafts)
                at = offset + start
                if not known.terms:
                    number = known.constant & ((1 << 8 * size) - 1)
                    self.section.data[at : at + size] = number.to_bytes(size, "little")
                    continue
                name, addend = single_symbol(known)
                if size != 4:
                    raise ToolError(f"the address of '{name}' takes 4 bytes, not {size}")
                self.section.fixups.append(Fixup(at, "word", name, addend))


def _without_distances(value: Sum, drafts: list[Draft]) -> Sum:
    """Returns the sum with distances between labels of the same section replaced by constants."""
    for draft in drafts:
        inside = [name for name in value.terms if name in draft.labels]
        if inside and sum(value.terms[name] for name in inside) == 0:
            for name in inside:
                value = value.plus(Sum(-draft.places[name], {name: 1}), -value.terms[name])
    return value


def _write_jump(section: Section, jump: Jump, start: int) -> None:
    name, addend = jump.target
    if jump.is_long:
        section.fixups.append(Fixup(start, "long", name, addend, 4 if jump.is_dual else 2))
        section.data += encode_long(jump.instruction, jump.values).to_bytes(4, "little")
    else:
        section.fixups.append(Fixup(start, "short", name, addend, 2, start + 2))
        section.data += encode_short(jump.instruction, jump.values).to_bytes(2, "little")


def _write_table(section: Section, table: Table, start: int) -> None:
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
