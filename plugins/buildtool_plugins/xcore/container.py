"""The flash container of XMOS's tools: networks and their weights, as the vendor's flash reader takes them.

    offset      bytes
    0           32: a pattern by which the reader adjusts its sampling
    32          1, 2 and their complements: the version
    36 + 16 i   of network i: four offsets from the container's start: its model (the length before it),
                its parameters, its operators, what is executed in place
    then        of each network: the model's length, model, parameters, operators, what is executed in place

Numbers have 32 bits, the lowest byte first; nothing is padded, and there is no checksum. In the file the two
halves of each byte are exchanged: so it lies in a flash that is read four bits at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import ToolError

PATTERN = bytes.fromhex("ff000f0f0f0f0f0fff00ff00ff00ff0031f7ce0831f7ce089c639c639c639c63")
VERSION = bytes((1, 2, 0xFE, 0xFD))
HEAD = len(PATTERN) + len(VERSION)
_OFFSETS, _LENGTH = struct.Struct("<4I"), struct.Struct("<I")
_SWAPPED = bytes((byte & 15) << 4 | byte >> 4 for byte in range(256))


@dataclass(frozen=True)
class Entry:
    """A network in the container; the vendor's model is a file for its interpreter, which may be empty."""

    params: bytes
    model: bytes = b""
    operators: bytes = b""
    xip: bytes = b""


def pack(entries: Sequence[Entry]) -> bytes:
    """The container's file; ToolError where it would be larger than its offsets can say."""
    head, body = bytearray(PATTERN + VERSION), bytearray()
    start = HEAD + _OFFSETS.size * len(entries)
    for entry in entries:
        model = start + len(body)
        params = model + _LENGTH.size + len(entry.model)
        operators = params + len(entry.params)
        xip = operators + len(entry.operators)
        if xip + len(entry.xip) >= 1 << 32:
            raise ToolError("a flash container has less than 4 GB")
        head += _OFFSETS.pack(model, params, operators, xip)
        body += _LENGTH.pack(len(entry.model)) + entry.model + entry.params + entry.operators + entry.xip
    return bytes(head + body).translate(_SWAPPED)
