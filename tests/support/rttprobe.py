"""A debug probe for RTT, made of QEMU's GDB server and a socket.

It stops the core, moves bytes between the rings in its memory and the socket, and continues the core.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from buildtool_plugins.board_link.conversation import rtt_block

RING = struct.Struct("<IIIIII")  # name, data, bytes, written, read, flags
UP, DOWN = 24, 48  # offsets in the control block, after 16 bytes of its name and two counts


class Debugger:
    """The part of GDB's remote protocol that reads and writes memory."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask("?")

    def _packet(self) -> str:
        data = b""
        while not (data.endswith(b"#", -3, -2) and b"$" in data):
            data += self._socket.recv(1)
        self._socket.sendall(b"+")
        return data[data.index(b"$") + 1 : -3].decode()

    def _send(self, text: str) -> None:
        self._socket.sendall(f"${text}#{sum(text.encode()) % 256:02x}".encode())

    def ask(self, text: str) -> str:
        self._send(text)
        return self._packet()

    def read(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.ask(f"m{address:x},{size:x}")) if size else b""

    def write(self, address: int, data: bytes) -> None:
        assert self.ask(f"M{address:x},{len(data):x}:{data.hex()}") == "OK"

    def go_on(self) -> None:
        self._send("c")

    def stop(self) -> None:
        self._socket.sendall(b"\x03")
        self._packet()

    def close(self) -> None:
        self._socket.close()


def pump(core: Debugger, block: int, ours: socket.socket) -> None:
    """Moves bytes in both directions while the core is stopped."""
    if core.read(block, 10) != b"SEGGER RTT":
        return
    up = block + UP
    _, data, size, written, read, _ = RING.unpack(core.read(up, RING.size))
    if written != read:
        parts = [(read, written)] if read < written else [(read, size), (0, written)]
        ours.sendall(b"".join(core.read(data + start, end - start) for start, end in parts))
        core.write(up + 16, struct.pack("<I", written))
    down = block + DOWN
    _, data, size, written, read, _ = RING.unpack(core.read(down, RING.size))
    room = (read - written - 1) % size
    if room and select.select([ours], [], [], 0)[0]:
        for byte in ours.recv(room):
            core.write(data + written, bytes([byte]))
            written = (written + 1) % size
        core.write(down + 12, struct.pack("<I", written))


@contextmanager
def attached(port: int, image: Path) -> Iterator[socket.socket]:
    """Yields a socket to the RTT of the core behind QEMU's server at `port`."""
    core, block = Debugger(port), rtt_block(image)
    theirs, ours = socket.socketpair()
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            core.go_on()
            ended.wait(0.02)
            core.stop()
            pump(core, block, ours)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield theirs
    finally:
        ended.set()
        thread.join()
        core.close()
        ours.close()
        theirs.close()
