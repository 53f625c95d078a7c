"""A flatbuffer table that is read with few calls; the schema package's accessors ask theirs at every turn.

It answers as `flatbuffers.table.Table` does, whose method names it has to have. Offsets that lead out of the
file raise struct.error or TypeError there and here.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, TypeVar

from flatbuffers.table import Table

_COUNT, _PLACE, _BACK = (Struct(code).unpack_from for code in ("<H", "<I", "<i"))

Accessor = TypeVar("Accessor")


class QuickTable(Table):  # type: ignore[misc]  # the package has no types
    """A table whose own table of fields is looked up once."""

    __slots__ = ("_end", "_fields")

    def __init__(self, data: bytes, place: int) -> None:
        super().__init__(data, place)
        self._fields = _within(place - _BACK(data, _within(place))[0])
        self._end = _COUNT(data, self._fields)[0]

    def Offset(self, field: int) -> int:
        """Where a field lies in the table, 0 if it has none."""
        found: int = _COUNT(self.Bytes, self._fields + field)[0] if field < self._end else 0
        return found

    def Get(self, flags: Any, place: int) -> Any:
        """A number of the kind that `flags` are."""
        return flags.packer_type.unpack_from(self.Bytes, _within(place))[0]

    def VectorLen(self, field: int) -> int:
        """Elements of the vector that a field points to."""
        length: int = _PLACE(self.Bytes, self.Vector(field) - 4)[0]
        return length

    def Vector(self, field: int) -> int:
        """Where the first element of the vector lies that a field points to."""
        place = _within(self.Pos + field)
        found: int = place + _PLACE(self.Bytes, place)[0] + 4
        return found


def _within(place: int) -> int:
    """A place in a file, which Python would count from its end if it were negative."""
    if place < 0:
        raise TypeError("an offset leads to before the file")
    return place


def quick(accessor: Accessor) -> Accessor:
    """An accessor of the schema package, which now reads its table so."""
    table = getattr(accessor, "_tab")  # noqa: B009 - of a class that is not known here
    setattr(accessor, "_tab", QuickTable(table.Bytes, table.Pos))  # noqa: B010
    return accessor
