"""A persistent worker for Bazel: `buildtool-worker --persistent_worker`.

Bazel sends WorkRequests to standard input and reads WorkResponses from standard output, as JSON (one document
after the other) or as protocol buffers (each after its length). A request's arguments are a command line of
buildtool. The worker answers from its own session and the cache, never from the user's daemon.
"""

from __future__ import annotations

import codecs
import contextlib
import contextvars
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from buildtool.base.session import Session

MOST_BYTES = 64 << 20  # in a request
_CHUNK = 1 << 20
_VARINT_BYTES = 10


@dataclass(frozen=True)
class Work:
    """A request of Bazel: a command line and the number of the request.

    With `cancel`, it cancels the earlier request with this number.
    """

    arguments: tuple[str, ...]
    number: int = 0
    cancel: bool = False


class BadWorkError(Exception):
    """The bytes that Bazel sent are not a request."""


Run = Callable[[Sequence[str]], int]  # runs a command line and returns its exit status


def serve(stream: BufferedIOBase, out: BufferedIOBase, run: Run, *, json_lines: bool) -> int:
    """Answers requests from `stream` on `out` until `stream` ends; returns the exit status.

    `run` runs a command line. `json_lines` says whether messages are JSON, and not protocol buffers.
    """
    requests = _json_requests(stream) if json_lines else _proto_requests(stream)
    try:
        for work in requests:
            if work.cancel:  # requests run one after the other: that request has been answered
                continue
            status, text = _run(run, work.arguments)
            if json_lines:
                answer = {"exitCode": status, "output": text, "requestId": work.number}
                out.write((json.dumps(answer) + "\n").encode())
            else:
                out.write(_proto_answer(status, text, work.number))
            out.flush()
    except BadWorkError as error:
        print(f"buildtool-worker: {error}", file=sys.stderr)
        return 1
    return 0


def _run(run: Run, arguments: Sequence[str]) -> tuple[int, str]:
    """Runs a command line. Returns its exit status, and what it wrote to both standard streams."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            status = run(arguments)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
    return status, output.getvalue()


# ---- JSON --------------------------------------------------------------------------------------------


def _json_requests(stream: BufferedIOBase) -> Iterator[Work]:
    """Yields requests from JSON documents. Bazel writes nothing between the documents, not even line ends."""
    decoder = json.JSONDecoder()
    letters = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    while data := stream.read1(_CHUNK):
        text = (text + letters.decode(data)).lstrip()
        while text:
            if not text.startswith("{") or len(text) > MOST_BYTES:
                raise BadWorkError("a request is too long, or not JSON")
            try:
                document, end = decoder.raw_decode(text)
            except (ValueError, RecursionError):
                break  # the rest of it has not arrived yet
            text = text[end:].lstrip()
            yield _work(document)
    if text:
        raise BadWorkError("a request is not JSON")


def _work(document: object) -> Work:
    if not isinstance(document, Mapping):
        raise BadWorkError("a request is not a map")
    arguments, number = document.get("arguments", []), document.get("requestId", 0)
    is_list = isinstance(arguments, list) and all(isinstance(word, str) for word in arguments)
    if not is_list or not isinstance(number, int):
        raise BadWorkError("a request has no list of arguments")
    return Work(tuple(arguments), number, bool(document.get("cancel", False)))


# ---- protocol buffers --------------------------------------------------------------------------------
# WorkRequest: arguments = 1 (strings), inputs = 2, request_id = 3, cancel = 4.
# WorkResponse: exit_code = 1, output = 2, request_id = 3.


def _proto_requests(stream: BufferedIOBase) -> Iterator[Work]:
    while True:
        length = _read_varint(stream)
        if length is None:
            return
        if length > MOST_BYTES:
            raise BadWorkError("a request is too long")
        data = stream.read(length)
        if len(data) < length:
            raise BadWorkError("the stream ends within a request")
        yield _proto_work(data)


def _read_varint(stream: BufferedIOBase) -> int | None:
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            if shift:
                raise BadWorkError("the stream ends within a length")
            return None
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return value
        if shift >= 7 * _VARINT_BYTES:
            raise BadWorkError("a length has too many bytes")


def _proto_work(data: bytes) -> Work:
    arguments: list[str] = []
    number, cancel = 0, False
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            arguments.append(value.decode("utf-8", "surrogateescape"))
        elif field == 3 and isinstance(value, int):
            number = value if value < 1 << 31 else value - (1 << 64)
        elif field == 4:
            cancel = bool(value)
    return Work(tuple(arguments), number, cancel)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields number and value of each field of a protocol buffer; a value is a whole number or bytes."""
    stream = io.BytesIO(data)
    while (tag := _read_varint(stream)) is not None:
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, _read_varint(stream) or 0
            continue
        size = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size = _read_varint(stream)
        if size is None:
            raise BadWorkError("a field of an unknown kind")
        value = stream.read(size) if size <= len(data) else b""
        if len(value) < size:
            raise BadWorkError("a field ends beyond its request")
        yield tag >> 3, value


def _proto_answer(status: int, text: str, number: int) -> bytes:
    output = text.encode("utf-8", "replace")
    body = b"\x08" + _varint(status) + b"\x12" + _varint(len(output)) + output
    if number:
        body += b"\x18" + _varint(number)
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # two's complement for negative numbers
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def main() -> int:
    """Runs the console script: as a worker with --persistent_worker, otherwise for one command line."""
    from buildtool.api import open_session
    from buildtool.fronts.cli import main as cli
    from buildtool.options import BAZEL, FRONT

    os.environ["BUILDTOOL_DAEMON"] = "off"
    words, context = sys.argv[1:], contextvars.copy_context()
    context.run(FRONT.set, BAZEL)

    def run(arguments: Sequence[str], session: Session | None = None) -> int:
        return context.run(cli.run, [_decode_once(word) for word in arguments], session)

    if "--persistent_worker" not in words:
        return run(_expand(words))
    session = open_session()
    replies = io.BufferedWriter(io.FileIO(os.dup(1), "wb"))
    requests = io.BufferedReader(io.FileIO(os.dup(0), "rb"))
    os.dup2(2, 1)  # other output must not get between the answers
    json_lines = "--worker_protocol=proto" not in words
    own = functools.partial(run, session=session)
    return serve(requests, replies, own, json_lines=json_lines)


def _decode_once(word: str) -> str:
    """Returns a word of a command line without Bazel's second encoding.

    Bazel encodes each byte of a name as a character in UTF-8.
    """
    try:
        return word.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return word


def _expand(words: Sequence[str]) -> list[str]:
    """Returns the words with each @FILE replaced by the words in this file, as Bazel passes arguments."""
    expanded: list[str] = []
    for word in words:
        if word.startswith("@"):
            try:
                expanded += Path(word[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                sys.exit(f"{word[1:]}: error: cannot read the file of arguments: {error}")
        else:
            expanded.append(word)
    return expanded


if __name__ == "__main__":
    sys.exit(main())
