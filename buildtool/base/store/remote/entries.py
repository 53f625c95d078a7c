"""An entry as it is sent: the compressed payload, a SHA-256 and a signature (zeros if it is not signed).

These bytes are field 5 (`stdout_raw`) of an ActionResult message of Bazel's remote execution API, because
servers for Bazel refuse other content below /ac/. Such servers may add fields to the message. A `level` is
the name of a cache namespace.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib

import msgpack

from buildtool import __version__
from buildtool.base.store.disk import MOST_BYTES, BadEntryError

_FORMAT = 1
_SEAL_BYTES = 32
_STDOUT_RAW = 5 << 3 | 2  # the field's tag
_MOST_FIELDS = 1000  # of an ActionResult


def pack(level: str, key: str, payload: bytes, secret: str) -> bytes:
    """Returns an entry as it is sent. It is signed with `secret`, unless that is ""."""
    body = zlib.compress(payload)
    checksum, signature = _seals(level, key, body, secret)
    entry = body + checksum + signature
    return bytes([_STDOUT_RAW]) + _varint(len(entry)) + entry


def unpack(data: bytes, level: str, key: str, secret: str) -> bytes:
    """Returns an entry's payload. Raises BadEntryError unless `data` are the undamaged bytes of this entry,
    signed with `secret` ("": no signature is needed).
    """
    entry = _find_field(data)
    body, checksum, signature = (
        entry[: -2 * _SEAL_BYTES],
        entry[-2 * _SEAL_BYTES : -_SEAL_BYTES],
        entry[-_SEAL_BYTES:],
    )
    right = _seals(level, key, body, secret)
    if checksum != right[0]:
        raise BadEntryError("it is damaged, another entry, or another version's")
    if secret and not hmac.compare_digest(signature, right[1]):
        raise BadEntryError("it is not signed with this key")
    stream = zlib.decompressobj()
    try:
        payload = stream.decompress(body, MOST_BYTES)
    except zlib.error:
        raise BadEntryError("it is not compressed") from None
    if not stream.eof or stream.unused_data:
        raise BadEntryError("it is too large")
    return payload


def _seals(level: str, key: str, body: bytes, secret: str) -> tuple[bytes, bytes]:
    content = msgpack.packb([_FORMAT, level, key, __version__]) + body
    signature = hmac.digest(secret.encode(), content, "sha256") if secret else bytes(_SEAL_BYTES)
    return hashlib.sha256(content).digest(), signature


def _varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _find_field(data: bytes) -> bytes:
    """Returns the content of field 5 of an encoded ActionResult. Raises BadEntryError if there is none: all
    fields before it must be length-delimited.
    """
    place = 0
    try:
        for _ in range(_MOST_FIELDS):
            tag = data[place]
            size, place = _read_varint(data, place + 1)
            if tag & 7 != 2 or place + size > len(data):
                break
            if tag == _STDOUT_RAW:
                return data[place : place + size]
            place += size
    except IndexError:
        pass
    raise BadEntryError("it is not an entry of this cache")


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, place
