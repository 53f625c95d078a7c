"""The front for Bazel: its two protocols, and answers equal to those of the command and of the daemon."""

import contextvars
import io
import json
import os
import subprocess
import sys
import threading

import pytest
from daemons import running
from zeronet import small

from buildtool.fronts.bazel import worker
from buildtool.fronts.bazel.worker import serve
from buildtool.fronts.cli import main as cli
from buildtool.options import BAZEL, FRONT


def varint(value):
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def proto_request(words, number=0, cancel=False, inputs=()):
    """A WorkRequest as protoc's own code writes it: fields in their order, those that are 0 left out."""
    body = b"".join(field(1, word.encode()) for word in words)
    body += b"".join(field(2, field(1, path.encode()) + field(2, b"digest")) for path in inputs)
    body += field(3, number) if number else b""
    body += field(4, 1) if cancel else b""
    body += field(5, 10)  # verbosity
    return varint(len(body)) + body


def proto_answers(data):
    """(exit code, output, request number) of each WorkResponse."""
    stream, found = io.BytesIO(data), []

    def number():
        value = shift = 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while stream.tell() < len(data):
        end = number() + stream.tell()
        fields = {}
        while stream.tell() < end:
            tag = number()
            fields[tag >> 3] = number() if tag & 7 == 0 else stream.read(number())
        found.append((fields.get(1, 0), fields.get(2, b"").decode(), fields.get(3, 0)))
    return found


def echo(words):
    print(" ".join(words))
    return len(words)


def served(data, *, json_lines, run=echo):
    out = io.BytesIO()
    status = serve(io.BytesIO(data), out, run, json_lines=json_lines)
    if json_lines:
        answers = [json.loads(line) for line in out.getvalue().splitlines()]
        return status, [(a["exitCode"], a["output"], a["requestId"]) for a in answers]
    return status, proto_answers(out.getvalue())


EXPECTED = [(2, "plan net\n", 0), (0, "\n", 7), (1, "ünï\n", 300)]


def test_requests_as_protocol_buffers_are_answered_in_order():
    data = proto_request(["plan", "net"], inputs=["a", "b"]) + proto_request([], 7)
    data += proto_request(["x"], 5, cancel=True) + proto_request(["ünï"], 300)
    assert served(data, json_lines=False) == (0, EXPECTED)


def test_requests_as_json_are_answered_in_order():
    one = json.dumps({"arguments": ["plan", "net"], "inputs": [{"path": "a"}]}, indent=1)
    two = json.dumps({"arguments": [], "requestId": 7}) + json.dumps({"requestId": 5, "cancel": True})
    three = json.dumps({"arguments": ["ünï"], "requestId": 300}, ensure_ascii=False)
    assert served(f"{one}\n{two}\n\n{three}\n".encode(), json_lines=True) == (0, EXPECTED)
    assert served(f"{one}\n{two} {three}".encode(), json_lines=True) == (0, EXPECTED)


NO_JSON = [b"{", b"[]\n", b'{"arguments": "plan"}\n', b'{"arguments": [1]}\n', b'{"requestId": "x"}\n']
NO_JSON += [b"\xff\xff\n" * 1001, b"[" * 100_000 + b"\n" * 1001]
NO_PROTO = [b"\x05\x0a", b"\x80", b"\xff" * 11, varint(1 << 40), b"\x02\x0a\x7f", b"\x02\x0b\x00"]
NO_PROTO += [b"\x0b\x0a" + b"\xff" * 9 + b"\x01"]


@pytest.mark.parametrize(
    ("data", "json_lines"), [*((data, True) for data in NO_JSON), *((data, False) for data in NO_PROTO)]
)
def test_what_is_no_request_ends_the_worker_with_a_message(data, json_lines, capsys):
    assert served(data, json_lines=json_lines) == (1, [])
    assert capsys.readouterr().err.startswith("buildtool-worker: ")


def test_noise_of_any_kind_ends_in_one_error_or_in_answers():
    import random

    rng = random.Random(4)
    good = proto_request(["plan", "net"], 3), json.dumps({"arguments": ["plan"], "requestId": 3}).encode()
    for number in range(2000):
        data = bytearray(good[number % 2])
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        out = io.BytesIO()
        assert serve(io.BytesIO(bytes(data)), out, lambda words: 0, json_lines=bool(number % 2)) in (0, 1)


@pytest.mark.slow
def test_the_worker_answers_what_the_command_and_the_daemon_answer(tmp_path, capsys):
    model = tmp_path / "net.tflite"
    model.write_bytes(small())
    (tmp_path / "arena.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    lines = [
        ["plan", str(model), "--board", "cortex-m4", "--json"],
        ["plan", str(model), "--board", "cortex-m4", "--ram", "16"],
        ["plan", str(model), "--board", "nonesuch", "--json"],
        ["front", str(model), "--board", "cortex-m4"],
        ["arena", str(tmp_path / "arena.csv"), "--json"],
        ["boards", "--json"],
        ["plan", "--help"],
        ["nonesuch"],
    ]

    as_bazel_writes = contextvars.copy_context()
    as_bazel_writes.run(FRONT.set, BAZEL)

    def run(words):
        try:
            return as_bazel_writes.run(cli.run, words)
        except SystemExit as ended:
            return ended.code or 0

    def of_the_command(words):
        status = run(words)
        told = capsys.readouterr()
        return status, told.out + told.err

    here = [of_the_command(words) for words in lines]
    with running(tmp_path, BUILDTOOL_DAEMON="require") as daemon:
        assert [of_the_command(words) for words in lines] == here
        assert daemon.counts()["requests"] >= 4
    command = [sys.executable, "-P", "-m", "buildtool.fronts.bazel.worker", "--persistent_worker"]
    environment = os.environ | {"BUILDTOOL_STATE_DIR": str(tmp_path / "none")}
    numbered = list(enumerate(lines, 1))
    documents = [json.dumps({"arguments": words, "requestId": number}) + "\n" for number, words in numbered]
    asked = {
        "proto": b"".join(proto_request(words, number) for number, words in numbered),
        "json": "".join(documents).encode(),
    }
    for protocol, data in asked.items():
        done = subprocess.run(
            [*command, f"--worker_protocol={protocol}"], input=data, capture_output=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        if protocol == "json":
            found = [(a["exitCode"], a["output"]) for a in map(json.loads, done.stdout.splitlines())]
        else:
            found = [answer[:2] for answer in proto_answers(done.stdout)]
        assert found == here
    assert not (tmp_path / "none").exists()  # it never asks the user's daemon


def test_names_that_bazel_has_encoded_twice_are_read_as_they_are_meant(tmp_path, monkeypatch, capsys):
    twice = "ü.tflite".encode().decode("latin-1")
    for named in (["plan", twice, "--board", "host"], ["plan", "ü.tflite", "--board", "host"]):
        (tmp_path / "words").write_text("\n".join(named), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["buildtool-worker", f"@{tmp_path / 'words'}"])
        assert worker.main() == 2
        assert capsys.readouterr().err.startswith("ü.tflite: error: cannot read the model")


def test_a_request_in_json_is_answered_though_no_line_ends_it():
    """As Bazel sends them: the next bytes come once it has the answer."""
    asked, ask = os.pipe()
    told, tell = os.pipe()
    with os.fdopen(asked, "rb") as stream, os.fdopen(tell, "wb") as out:
        server = threading.Thread(target=serve, args=(stream, out, echo), kwargs={"json_lines": True})
        server.start()
        for number in (1, 2):
            os.write(ask, json.dumps({"arguments": ["a"], "requestId": number}).encode())
            assert json.loads(os.read(told, 1000))["requestId"] == number
        os.close(ask)
        server.join()
    os.close(told)


def test_without_a_worker_one_command_line_is_run_from_a_file_of_arguments(tmp_path, monkeypatch, capsys):
    (tmp_path / "words").write_text("boards\n--json\n")
    monkeypatch.setattr(sys, "argv", ["buildtool-worker", f"@{tmp_path / 'words'}"])
    assert worker.main() == 0
    assert "cortex-m4" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["buildtool-worker", f"@{tmp_path}/nosuch"])
    with pytest.raises(SystemExit, match="nosuch: error: cannot read the file of arguments"):
        worker.main()
