"""An entry's bytes: magic, a header that names the entry, the payload, and a checksum over all of it.

    8 bytes     magic
    4 bytes     length of the header, little-endian
    header      msgpack: [format, level, key, version of buildtool, length of the payload]
    payload
    32 bytes    SHA-256 of everything before

The header names the entry's own level and key, so that a file under another one's name is refused.
"""

from __future__ import annotations

import hashlib
import struct

import msgpack

from buildtool import __version__

FORMAT = 1
MOST_BYTES = 16 << 20  # of an entry: no larger file is written or read
_MAGIC = b"btcache\n"
_LENGTH = struct.Struct("<I")
_DIGEST = hashlib.sha256().digest_size
_MOST_HEADER = 512


class BadEntryError(Exception):
    """Bytes that are not the entry that was asked for."""


def pack(level: str, key: str, payload: bytes) -> bytes:
    """The bytes of an entry."""
    header = msgpack.packb([FORMAT, level, key, __version__, len(payload)])
    head = _MAGIC + _LENGTH.pack(len(header)) + header
    return b"".join((head, payload, hashlib.sha256(head + payload).digest()))


def unpack(data: bytes, level: str, key: str) -> bytes:
    """The payload; BadEntryError unless these are the whole and unharmed bytes of just that entry."""
    start = len(_MAGIC) + _LENGTH.size
    if len(data) < start + _DIGEST or not data.startswith(_MAGIC):
        raise BadEntryError("not an entry")
    end = len(data) - _DIGEST
    if hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
        raise BadEntryError("its checksum differs")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    if length > min(_MOST_HEADER, end - start):
        raise BadEntryError("its header is too long")
    try:
        header = msgpack.unpackb(data[start : start + length])
    except Exception as error:  # msgpack raises a dozen kinds
        raise BadEntryError("its header cannot be read") from error
    if header != [FORMAT, level, key, __version__, end - start - length]:
        raise BadEntryError("it is another entry, or another version's")
    return data[start + length : end]
