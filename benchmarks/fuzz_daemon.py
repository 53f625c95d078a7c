"""Attacks the daemon's socket and the cache's entries with hostile bytes, and counts what happens.

    python -m benchmarks.fuzz_daemon --frames 6000 --entries 700

Frames are messages on the socket: garbage, half frames, lengths up to 4 GiB, other versions, deep nesting,
containers that are many times larger once they are read, requests with values of strange types, valid
messages with bytes changed, many requests of which no answer is read, clients that only stay (160 at once,
more than the daemon accepts). After each batch the daemon has to answer a valid request, be the same process,
and have little more memory. Entries are files of the cache: one of every namespace is damaged, with a correct
checksum and without one. The answer has to be that of an empty cache, and no file outside the cache's folder
may appear.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack

from buildtool.api import handle_cached
from buildtool.base import folders, wire
from buildtool.base.errors import BuildtoolError
from buildtool.base.session import Session
from buildtool.base.store import disk
from buildtool.base.store.cache import Cache
from buildtool.client import daemon as client
from buildtool.client import endpoint as places

MOST_STAYING = 160  # connections that are kept open
MOST_GAIN = (
    128 << 20
)  # bytes kept after an attack: those of one worst frame (110 MB, which the allocator keeps)
REQUEST = {"kind": "plan", "model": "ds_cnn:seed=1", "board": "cortex-m4"}
_SECONDS = 5.0


# ---- frames ------------------------------------------------------------------------------------------


def _framed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def _message(**fields: Any) -> bytes:
    return _framed(msgpack.packb({"protocol": wire.PROTOCOL, **fields}))


HELLO = _message(hello={"version": "fuzz"})


def _deep(rng: random.Random) -> bytes:
    """Returns a frame of nested containers, from 100 to 100,000 levels deep."""
    depth = rng.choice((100, 400, 510, 520, 900, 1020, 1030, 100_000))
    inner = rng.choice((b"\x91", b"\x81\xa1k")) * depth + b"\xc0"
    return _framed(b"\x82\xa8protocol\x01\xa7request" + inner)


def _bomb(rng: random.Random) -> bytes:
    """Returns a frame that announces far more data than follows, or that is full of empty values."""
    kind = rng.randrange(5)
    if kind == 0:
        return _framed(rng.choice((b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9")) + b"\xff\xff\xff\xff")
    filler = rng.choice((b"\x90", b"\x80", b"\xc0", b"\xd6\xff\0\0\0\0", b"\xa0"))
    count = (wire.REQUEST_LIMIT - 100) // len(filler)
    return _framed(b"\x82\xa8protocol\x01\xa7request\xdd" + struct.pack(">I", count) + filler * count)


def _value(rng: random.Random, depth: int = 0) -> Any:
    """Returns a random value of any msgpack type."""
    kind = rng.randrange(12 if depth < 3 else 9)
    if kind < 3:
        return rng.choice((None, True, False, 0, -1, 2**63, -(2**63), 1e308, float("nan")))
    if kind < 6:
        return rng.choice(("", "\0", "x" * 300, "/etc/passwd", "../..", "plan", "ds_cnn", "\udcff"))
    if kind < 8:
        return rng.randbytes(rng.randrange(20))
    if kind == 8:
        return msgpack.Timestamp(rng.randrange(2**33))
    if kind == 9:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = ("kind", "model", "board", "options", "path", "sha256", "data", "name", 7, None, b"raw")
    return {rng.choice(keys): _value(rng, depth + 1) for _ in range(rng.randrange(5))}


def _strange(rng: random.Random) -> bytes:
    """Returns a valid frame whose fields have random types."""
    request: Any = {
        "kind": rng.choice(("plan", "boards", "zoo", "arena", "describe", "nonesuch")),
        **{rng.choice(("model", "board", "file", "options", "name")): _value(rng) for _ in range(3)},
    }
    fields = {
        "request": rng.choice((request, request, _value(rng))),
        "cache": rng.choice(("on", "off", "renew", _value(rng))),
        "environment": rng.choice(({}, {"PATH": "/bin"}, {"A=B": "\0"}, _value(rng))),
        "remote": rng.choice(({}, {"url": "http://127.0.0.1:9", "mode": "write"}, {"x": "y"}, _value(rng))),
    }
    if rng.random() < 0.3:
        fields = {"control": rng.choice(("status", "lease", "nonesuch", _value(rng)))}
    elif rng.random() < 0.2:
        fields = {"prepare": rng.choice(([[request, {}]], [[request]], [_value(rng)], _value(rng)))}
        fields |= {rng.choice(("idle", "spent")): rng.choice((-1, 0, 3.5, float("nan"), _value(rng)))}
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        payload = msgpack.packb({"protocol": wire.PROTOCOL, **fields}, unicode_errors="surrogateescape")
        return _framed(payload)
    return b""


def _changed(rng: random.Random) -> bytes:
    """Returns a valid request with some bytes changed, removed or duplicated."""
    data = bytearray(_message(request={"kind": "boards"}, cache="on", environment={}))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        what = rng.randrange(3)
        if what == 0:
            data[at] = rng.randrange(256)
        elif what == 1:
            del data[at]
        else:
            data[at:at] = data[at : at + 8]
    return bytes(data)


def _unread(rng: random.Random) -> bytes:
    """Returns many copies of a valid message, to be sent at once."""
    emit = _message(request={"kind": "emit", "model": "ds_cnn", "board": "host", "name": "net"})
    message = rng.choice((emit, emit, _message(request={"kind": "zoo"}), _message(control="status")))
    return message * rng.choice((1, 55, 300))


STAYING: dict[str, Callable[[random.Random], bytes]] = {
    "reads nothing": _unread,
    "only stays": lambda rng: b"",
}
KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "garbage": lambda rng: rng.randbytes(rng.randrange(1, 200)),
    "garbage in a frame": lambda rng: _framed(rng.randbytes(rng.randrange(200))),
    "half a frame": lambda rng: _message(request={"kind": "boards"})[: rng.randrange(1, 30)],
    "huge lengths": lambda rng: struct.pack("<I", rng.choice((2**32 - 1, 2**31, wire.REQUEST_LIMIT + 1))),
    "other versions": lambda rng: _framed(msgpack.packb({"protocol": rng.choice((0, 2, -1, "1", None))})),
    "deep": _deep,
    "bombs": _bomb,
    "strange values": _strange,
    "changed bytes": _changed,
}


def attack(address: str, kind: str, rng: random.Random) -> str:
    """Sends data of the kind `kind` over one connection; returns the result in one word."""
    data = KINDS[kind](rng)
    with socket.socket(socket.AF_UNIX) as ours:
        ours.settimeout(_SECONDS)
        try:
            ours.connect(address)
            if rng.random() < 0.9:
                ours.sendall(HELLO)
            cut = rng.randrange(len(data) + 1) if rng.random() < 0.2 else 0
            for part in (data[:cut], data[cut:]):
                ours.sendall(part)
            if rng.random() < 0.3:
                return "left"
            ours.shutdown(socket.SHUT_WR)
            heard = b""
            while part := ours.recv(1 << 16):
                heard += part
        except TimeoutError:
            return "SILENT"
        except OSError:
            return "hung up"
    return "refused" if b"error" in heard else "answered" if b"answer" in heard else "hung up"


def stay(address: str, kind: str, rng: random.Random) -> socket.socket | None:
    """Sends data of a kind, and reads nothing. Returns the connection, or None if the daemon closed it."""
    ours = socket.socket(socket.AF_UNIX)
    ours.settimeout(0.2)  # the daemon need not take all of it
    with contextlib.suppress(TimeoutError):
        try:
            ours.connect(address)
            ours.sendall(HELLO + STAYING[kind](rng))
        except ConnectionError:
            ours.close()
            return None
    return ours


def frames(count: int, seed: int, batch: int = 200) -> Iterator[Counter[str]]:
    """Attacks a daemon; yields counts by kind and result after each batch.

    Raises AssertionError if the daemon was harmed.
    """
    at = places.endpoint()
    link = client.reach(at, start=True)
    pid = link.hello["pid"]
    expected = link.request({"kind": "boards"}, "off", None)
    link.close()
    before = _resident(pid)
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    staying: list[socket.socket] = []
    for number, kind in zip(range(count), itertools.cycle(sorted(KINDS | STAYING)), strict=False):
        if kind in STAYING:
            found = stay(str(at.address), kind, rng)
            counts[f"{kind}: {'stays' if found else 'hung up'}"] += 1
            staying += [found] if found else []
            for one in staying[:-MOST_STAYING]:
                one.close()
            del staying[:-MOST_STAYING]
        else:
            counts[f"{kind}: {attack(str(at.address), kind, rng)}"] += 1
        if number % batch == batch - 1 or number == count - 1:
            link = client.reach(at, start=False)
            assert link.hello["pid"] == pid, "another daemon answers: the first one has died"
            assert link.request({"kind": "boards"}, "off", None) == expected
            found = link.control("status")["counts"]
            link.close()
            assert found["faults"] == 0, "the daemon has noted faults of its own: see its log"
            assert _settled(pid, before + MOST_GAIN), (
                f"the daemon has grown by {_resident(pid) - before:,} bytes"
            )
            yield counts
    for one in staying:
        one.close()


def _settled(pid: int, most: int) -> bool:
    """Whether a process has at most `most` bytes of memory, within five seconds.

    It may need this time to end with frames that it still reads.
    """
    end = time.monotonic() + 5
    while _resident(pid) >= most:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


# ---- entries -----------------------------------------------------------------------------------------


GIVEN = ("networks",)  # levels that hold what a user could give as a file: they are read with that care
DAMAGES = ("flipped", "cut", "swapped", "sealed noise", "sealed bomb", "sealed flip")


def entries(count: int, seed: int, folder: Path) -> Counter[str]:
    """Damages cache entries, and repeats requests; returns counts by level and damage.

    Raises AssertionError if the damage changes an answer. Only the user can write an entry with a correct
    checksum: a flipped bit in such an entry may change an answer, but nothing else.
    """
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    requests = [{**REQUEST, "kind": kind} for kind in ("plan", "front", "emit")]

    def ask() -> list[bytes]:
        cache = Cache(folder / "cache", "fuzz")
        return [msgpack.packb(handle_cached(request, Session(keeper=cache))) for request in requests]

    expected = ask()
    outside = sorted(path for path in folder.rglob("*") if not path.is_relative_to(folder / "cache"))
    while (done := sum(counts.values())) < count:
        kept = sorted(path for path in (folder / "cache").rglob("*") if len(path.name) == 62)
        assert kept, "nothing is kept"
        damage = DAMAGES[len(counts) % len(DAMAGES)] if not done else rng.choice(DAMAGES)
        for path in kept[: count - done]:
            level, key = path.parent.parent.name, path.parent.name + path.name
            if level in GIVEN and "sealed" in damage:
                continue
            path.write_bytes(_damaged(path.read_bytes(), level, key, damage, kept, rng))
            counts[f"{level} {damage}"] += 1
        try:
            found = ask()
        except BuildtoolError as error:
            raise AssertionError(f"a damaged entry failed a request: {error}") from None
        if damage == "sealed flip":
            Cache(folder / "cache", "fuzz").disk.empty()
            found = ask()
        assert found == expected, f"a damaged entry ({damage}) changed an answer"
    now = sorted(path for path in folder.rglob("*") if not path.is_relative_to(folder / "cache"))
    assert now == outside, "something was written outside the cache's folder"
    return counts


def _damaged(good: bytes, level: str, key: str, damage: str, others: list[Path], rng: random.Random) -> bytes:
    if damage == "flipped":
        data = bytearray(good)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    if damage == "cut":
        return good[: rng.randrange(len(good))]
    if damage == "swapped":
        return rng.choice(others).read_bytes()
    if damage == "sealed noise":
        return disk.pack(level, key, rng.randbytes(rng.randrange(200)))
    if damage == "sealed bomb":
        return disk.pack(level, key, rng.choice((b"\xdd\xff\xff\xff\xff", b"\x91" * 2000, b"\x90" * 10_000)))
    try:
        payload = bytearray(disk.unpack(good, level, key))
    except disk.BadEntryError:
        return good
    if payload:
        payload[rng.randrange(len(payload))] ^= 1 << rng.randrange(8)
    return disk.pack(level, key, bytes(payload))


def main() -> int:
    """Runs both attacks with folders of their own, and prints the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--entries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[folders.STATE] = str(folder / "state")
        os.environ[folders.CACHE] = str(folder / "daemon's cache")
        counts: Counter[str] = Counter()
        try:
            for counts in frames(args.frames, args.seed):
                print(f"\r{sum(counts.values()):,} frames", end="", file=sys.stderr, flush=True)
        finally:
            with contextlib.suppress(places.AbsentError):
                client.reach(start=False).control("stop")
        damaged = entries(args.entries, args.seed, folder)
    print()
    for name, number in sorted((counts + damaged).items()):
        print(f"{number:8,}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
