"""Arena offsets inside a .tflite file: the metadata that TensorFlow Lite Micro takes a plan from.

`OfflineMemoryAllocation` names a buffer of int32: a version, the number of subgraphs, the number of
tensors, and for each tensor its offset in the arena or -1 (placed at run time, or none).
"""

import struct
from collections.abc import Sequence
from typing import Any

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.schema import tflite

NAME = b"OfflineMemoryAllocation"
VERSION = 1
ALIGNMENT = 16  # bytes: of constants in the file, and so of the prefix

MAX_METADATA = 256  # entries

_FIELDS = 8  # of the schema's Model table; of them
_BUFFERS, _METADATA = 4, 6
_UINT32 = 4


class _Prefix:
    """Bytes that go before the old file, from which offsets can only point forward."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._pending: list[tuple[int, int]] = []  # (place of an offset, where in the old file it points)

    def put(self, *values: int) -> int:
        """Appends unsigned 32-bit words; the place of the first."""
        place = len(self.data)
        self.data += struct.pack(f"<{len(values)}I", *values)
        return place

    def put_bytes(self, data: bytes) -> None:
        """Appends bytes, and zeros up to the next word."""
        self.data += data + bytes(-len(data) % _UINT32)

    def old(self, target: int) -> None:
        """Appends an offset to place `target` of the old file."""
        self._pending.append((self.put(0), target))

    def point(self, place: int) -> None:
        """The offset at `place` points to here."""
        struct.pack_into("<I", self.data, place, len(self.data) - place)

    def before(self, old: bytes) -> bytes:
        """The whole file."""
        self.data += bytes(-len(self.data) % ALIGNMENT)
        for place, target in self._pending:
            struct.pack_into("<I", self.data, place, len(self.data) + target - place)
        return bytes(self.data) + old


def with_offsets(data: bytes, offsets: Sequence[int]) -> bytes:
    """The .tflite file `data` (whose tensors were read without an error) with an arena offset each.

    The old file stays as it is, to the byte; a new root table before it shares all of its parts. An
    allocation that is there already no longer counts.
    """
    model = tflite.Model.GetRootAs(data, 0)
    if not 0 <= model.MetadataLength() <= MAX_METADATA:
        raise ModelError(f"{model.MetadataLength()} metadata entries, more than {MAX_METADATA}")
    prefix = _Prefix()
    holes = _put_root(prefix, model)
    buffers = [model.Buffers(i) for i in range(model.BuffersLength())]
    kept = [m for i in range(model.MetadataLength()) if (m := model.Metadata(i)).Name() != NAME]
    new_buffer = _vector(prefix, holes[_BUFFERS], buffers)
    new_metadata = _vector(prefix, holes[_METADATA], kept)
    _put_metadata(prefix, new_metadata, len(buffers))
    _put_buffer(prefix, new_buffer, offsets)
    result = prefix.before(data)
    if len(result) >= 1 << 31:
        raise ModelError("with offsets the file would have more than 2 GiB")
    return result


def _put_root(prefix: _Prefix, model: Any) -> dict[int, int]:
    """The start of a file and its root table; by field, the places of the offsets that are 0 so far."""
    places = {field: _target(model._tab, field) for field in range(1, _FIELDS)}
    root = prefix.put(0)
    prefix.put_bytes(b"TFL3")
    present = [4, *(4 + 4 * f if places[f] or f in (_BUFFERS, _METADATA) else 0 for f in range(1, _FIELDS))]
    prefix.put_bytes(struct.pack("<10H", 4 + 2 * _FIELDS, 4 + 4 * _FIELDS, *present))
    prefix.point(root)
    prefix.put(4 + 2 * _FIELDS)  # back to the table's field list
    prefix.put(model.Version())
    holes: dict[int, int] = {}
    for field, place in places.items():
        if place and field not in (_BUFFERS, _METADATA):
            prefix.old(place)
        else:
            holes[field] = prefix.put(0)
    return holes


def _put_metadata(prefix: _Prefix, hole: int, buffer: int) -> None:
    """A Metadata table: a name, and a buffer's number."""
    prefix.put_bytes(struct.pack("<4H", 8, 12, 4, 8))
    prefix.point(hole)
    prefix.put(8)
    prefix.point(prefix.put(0, buffer))
    prefix.put(len(NAME))
    prefix.put_bytes(NAME + b"\0")


def _put_buffer(prefix: _Prefix, hole: int, offsets: Sequence[int]) -> None:
    """A Buffer table of the offsets; its data begin at a multiple of 16."""
    values = struct.pack(f"<{3 + len(offsets)}i", VERSION, 1, len(offsets), *offsets)
    prefix.put_bytes(struct.pack("<4H", 6, 8, 4, 0))
    prefix.point(hole)
    prefix.put(8)
    vector = prefix.put(0)
    prefix.data += bytes((-len(prefix.data) - _UINT32) % ALIGNMENT)
    prefix.point(vector)
    prefix.put(len(values))
    prefix.put_bytes(values)


def _target(table: Any, field: int) -> int:
    """Where in the file the field's vector or string stands; 0: the table has none."""
    offset = table.Offset(4 + 2 * field)
    return int(table.Indirect(table.Pos + offset)) if offset else 0


def _vector(prefix: _Prefix, hole: int, old: Sequence[Any]) -> int:
    """A vector of tables of the old file and one new one, whose offset's place is returned."""
    prefix.point(hole)
    prefix.put(len(old) + 1)
    for table in old:
        prefix.old(int(table._tab.Pos))
    return prefix.put(0)
