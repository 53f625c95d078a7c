"""The transports of bytes to a board: a serial port (pyserial), or a socket (to an RTT server)."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from buildtool.base.errors import Hint, ToolError, suggest

PYSERIAL = "pip install pyserial"
RTT_SERVER = 'OpenOCD: rtt setup ADDRESS SIZE "SEGGER RTT"; rtt start; rtt server start PORT 0'
WRITE_SECONDS = 10.0


def _import_pyserial() -> Any:
    try:
        import serial
    except ImportError:
        text = "serial ports need the package pyserial, which is not installed"
        raise ToolError(text, hint=PYSERIAL) from None
    return serial


def serial_ports() -> list[str]:
    """Returns the names of the serial ports of USB adapters and boards on this machine."""
    _import_pyserial()
    from serial.tools import list_ports

    return [port.device for port in sorted(list_ports.comports()) if port.vid is not None]


def is_pseudo(name: str) -> bool:
    """Whether a port is a pseudo-terminal, behind which is a program instead of a board."""
    return str(Path(name).resolve()).startswith(("/dev/pts/", "/dev/ttys"))


def only_port() -> str:
    """Returns the name of this machine's only serial port. Raises ToolError if there is none, or more than
    one.
    """
    ports = serial_ports()
    if not ports:
        hint = [Hint("connect the board by USB"), suggest("name the port", wire="serial:/dev/ttyUSB0")]
        raise ToolError("no serial port of a board was found", hint=hint)
    if len(ports) > 1:
        hint = [suggest(wire=f"serial:{name}") for name in ports]
        raise ToolError(f"there are {len(ports)} serial ports: {', '.join(ports)}", hint=hint)
    return ports[0]


class SerialPort:
    """A serial port with 8 bits, no parity and no handshake. It is locked against other programs."""

    def __init__(self, name: str, baud: int) -> None:
        serial = _import_pyserial()
        self.name = name
        self._errors = (serial.SerialException, OSError)
        try:
            self._port = serial.Serial(name, baud, timeout=0, write_timeout=WRITE_SECONDS, exclusive=True)
        except self._errors as error:
            raise _open_error(name, error) from None
        except ValueError as error:
            raise ToolError(f"the port cannot be set up: {error}", path=name) from None

    def read(self, seconds: float) -> bytes:
        """Returns the bytes that have arrived, or b"". It waits up to `seconds` for the first byte."""
        with _report_errors(self.name, self._errors):
            self._port.timeout = seconds
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""
        with _report_errors(self.name, self._errors):
            self._port.write(data)

    def close(self) -> None:
        """Closes the port."""
        with suppress(*self._errors):
            self._port.close()


class Socket:
    """A TCP connection to an RTT server, such as that of OpenOCD. `connected` is an open socket to use
    instead.
    """

    def __init__(self, name: str, connected: socket.socket | None = None) -> None:
        self.name = name
        if connected is not None:
            self._socket = connected
            return
        host, _, port = name.rpartition(":")
        if not (host and port.isascii() and port.isdigit() and int(port[:6]) < 1 << 16):
            hint = suggest("HOST:PORT", wire="rtt:127.0.0.1:9090")
            raise ToolError(f"'{name}' is not a server's address", hint=hint)
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=WRITE_SECONDS)
        except (OSError, ValueError, OverflowError) as error:
            text = f"cannot connect to the RTT server at {name}: {error}"
            raise ToolError(text, hint=RTT_SERVER) from None

    def read(self, seconds: float) -> bytes:
        """Returns the bytes that have arrived, or b"". It waits up to `seconds` for the first byte."""
        with _report_errors(self.name, (OSError, ValueError)):
            if not select.select([self._socket], [], [], seconds)[0]:
                return b""
            if data := self._socket.recv(1 << 16):
                return data
            raise OSError(errno.EPIPE, "it was closed")

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""
        with _report_errors(self.name, (OSError,)):
            self._socket.sendall(data)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


def _open_error(name: str, error: Exception) -> ToolError:
    number, text = getattr(error, "errno", None), str(error)
    if number == errno.ENOENT or not Path(name).exists():
        ports = serial_ports()
        hints = [suggest(wire=f"serial:{port}") for port in ports] or [Hint("connect the board by USB")]
        return ToolError("there is no such port", path=name, hint=hints)
    if number in (errno.EACCES, errno.EPERM):
        groups = "be a member of the group that owns it (dialout, uucp)"
        hint = f"{groups}, or see docs/guides/attached-boards.md (udev)"
        return ToolError("this user may not open the port", path=name, hint=hint)
    if number in (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK) or "exclusively lock" in text:
        hint = "end the terminal program or the other run that uses it (lsof names it)"
        return ToolError("another program uses the port", path=name, hint=hint)
    if number in (errno.ENOTTY, errno.EINVAL) or "configure port" in text:
        return ToolError("this is not a serial port", path=name)
    return ToolError(f"the port cannot be opened: {text}", path=name)


@contextmanager
def _report_errors(name: str, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """A context that turns a connection's errors into ToolErrors. `name` is the port, `errors` their
    types.
    """
    try:
        yield
    except errors as error:
        text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        hint = "check the cable: the board was unplugged, lost its power, or another program reads the port"
        raise ToolError(f"the connection broke: {text}", path=name, hint=hint) from None
