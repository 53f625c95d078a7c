"""Writes arena offsets into a .tflite file, as metadata that TensorFlow Lite Micro reads.

The entry `OfflineMemoryAllocation` refers to a buffer of int32: a version, the number of subgraphs, the
number of tensors, and an arena offset per tensor, which is -1 if the runtime places it or it needs no place.
"""

import struct
from collections.abc import Sequence
from typing import Any

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.schema import tflite

NAME = b"OfflineMemoryAllocation"
VERSION = 1
ALIGNMENT = 16  # bytes; constants in the file are aligned to this, so the prefix must be too

MAX_METADATA = 256  # most metadata entries in a file

_FIELDS = 8  # number of fields in the schema's Model table
_BUFFERS, _METADATA = 4, 6  # numbers of two of these fields
_UINT32 = 4  # bytes


class _Prefix:
    """The bytes that are put before the old file. Offsets in them can only point forward."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._pending: list[tuple[int, int]] = []  # (place of an offset, its target in the old file)

    def put(self, *values: int) -> int:
        """Appends unsigned 32-bit words; returns the position of the first one."""
        place = len(self.data)
        self.data += struct.pack(f"<{len(values)}I", *values)
        return place

    def put_bytes(self, data: bytes) -> None:
        """Appends bytes, then zeros up to the next word."""
        self.data += data + bytes(-len(data) % _UINT32)

    def old(self, target: int) -> None:
        """Appends an offset that points to the position `target` in the old file."""
        self._pending.append((self.put(0), target))

    def point(self, place: int) -> None:
        """Sets the offset at position `place` so that it points to the current end of the prefix."""
        struct.pack_into("<I", self.data, place, len(self.data) - place)

    def before(self, old: bytes) -> bytes:
        """Returns the whole new file: the prefix, then `old`."""
        self.data += bytes(-len(self.data) % ALIGNMENT)
        for place, target in self._pending:
            struct.pack_into("<I", self.data, place, len(self.data) + target - place)
        return bytes(self.data) + old


def with_offsets(data: bytes, offsets: Sequence[int]) -> bytes:
    """Returns the .tflite file `data` with one arena offset for each tensor.

    `read_model` must have accepted the file before. The new file has a new root table, followed by all bytes
    of the old file. The root table refers to the old tables, but not to an old metadata entry for offsets.
    """
    model = tflite.Model.GetRootAs(data, 0)
    entries = model.MetadataLength()
    if not 0 <= entries * _UINT32 <= len(data):
        raise ModelError(f"a vector of {entries} metadata entries does not fit in the file")
    if entries > MAX_METADATA:
        raise ModelError(f"{entries} metadata entries, more than {MAX_METADATA}")
    prefix = _Prefix()
    holes = _put_root(prefix, model)
    buffers = [model.Buffers(i) for i in range(model.BuffersLength())]
    others = [m for i in range(entries) if (m := model.Metadata(i)).Name() != NAME]
    buffer_hole = _put_vector(prefix, holes[_BUFFERS], buffers)
    metadata_hole = _put_vector(prefix, holes[_METADATA], others)
    _put_metadata(prefix, metadata_hole, len(buffers))
    _put_buffer(prefix, buffer_hole, offsets)
    result = prefix.before(data)
    if len(result) >= 1 << 31:
        raise ModelError("with arena offsets the file would be larger than 2 GiB")
    return result


def _put_root(prefix: _Prefix, model: Any) -> dict[int, int]:
    """Appends the file header and the root table. Returns {field: position} of offsets that are still 0."""
    places = {field: _find_target(model._tab, field) for field in range(1, _FIELDS)}
    root = prefix.put(0)
    prefix.put_bytes(b"TFL3")
    present = [4, *(4 + 4 * f if places[f] or f in (_BUFFERS, _METADATA) else 0 for f in range(1, _FIELDS))]
    prefix.put_bytes(struct.pack("<10H", 4 + 2 * _FIELDS, 4 + 4 * _FIELDS, *present))
    prefix.point(root)
    prefix.put(4 + 2 * _FIELDS)  # distance back to the table's list of fields
    prefix.put(model.Version())
    holes: dict[int, int] = {}
    for field, place in places.items():
        if place and field not in (_BUFFERS, _METADATA):
            prefix.old(place)
        else:
            holes[field] = prefix.put(0)
    return holes


def _put_metadata(prefix: _Prefix, hole: int, buffer: int) -> None:
    """Appends a Metadata table with the name `NAME` and a buffer's number.

    The offset at position `hole` then points to the table.
    """
    prefix.put_bytes(struct.pack("<4H", 8, 12, 4, 8))
    prefix.point(hole)
    prefix.put(8)
    prefix.point(prefix.put(0, buffer))
    prefix.put(len(NAME))
    prefix.put_bytes(NAME + b"\0")


def _put_buffer(prefix: _Prefix, hole: int, offsets: Sequence[int]) -> None:
    """Appends a Buffer table with the arena offsets. Its data start at a multiple of `ALIGNMENT`.

    The offset at position `hole` then points to the table.
    """
    values = struct.pack(f"<{3 + len(offsets)}i", VERSION, 1, len(offsets), *offsets)
    prefix.put_bytes(struct.pack("<4H", 6, 8, 4, 0))
    prefix.point(hole)
    prefix.put(8)
    vector = prefix.put(0)
    prefix.data += bytes((-len(prefix.data) - _UINT32) % ALIGNMENT)
    prefix.point(vector)
    prefix.put(len(values))
    prefix.put_bytes(values)


def _find_target(table: Any, field: int) -> int:
    """Returns the position of the field's vector or string in the file, 0 if the table has no such field."""
    offset = table.Offset(4 + 2 * field)
    return int(table.Indirect(table.Pos + offset)) if offset else 0


def _put_vector(prefix: _Prefix, hole: int, old: Sequence[Any]) -> int:
    """Appends a vector of the tables `old` and one new table. Returns the position of the new table's offset.

    The offset at position `hole` then points to the vector.
    """
    prefix.point(hole)
    prefix.put(len(old) + 1)
    for table in old:
        prefix.old(int(table._tab.Pos))
    return prefix.put(0)
