"""What is done with a damaged file, and what came of it.

An outcome is "accepted", "refused" (an error of ours, of one or two plain sentences), or one of the bad ones:
"traceback", "warning", "memory", "silent" (a status without a word). Crashes and hangs end the process, and
workers.py sees them.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
import resource
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzz import damage, flatbuffer, plans, protobuf, records, seeds
from benchmarks.fuzz.imagecheck import Checker
from buildtool.base.errors import BuildtoolError
from buildtool.base.files import File
from buildtool.firmware.datasets.arrays import from_file
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.reader import read_model

MOST_MEMORY = 256 << 20  # bytes that one file may take: they all are small


@dataclass(frozen=True)
class Outcome:
    """The result for a damaged file. Files that failed in the same way have the same `detail`."""

    what: str
    detail: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether the result shows a fault of buildtool."""
        return self.what not in ("accepted", "refused")


def _plan_mutant(data: bytes, rng: random.Random) -> bytes:
    """Returns a damaged plan: its msgpack data is changed, or the records of the decoded plan."""
    return plans.mutated(data, rng) if rng.random() < 0.7 else records.plan(data, rng)


_SCHEMA: dict[str, damage.Mutation] = {
    "tflite": flatbuffer.mutated,
    "onnx": protobuf.mutated,
    "board": damage.text_values,
    "npy": records.npy,
    "plan": _plan_mutant,
    "image": records.image,
    "cfg": damage.text_values,
    "csv": damage.text_values,
}
_BY_SCHEMA = 0.7  # of all mutants of a format that has one
KINDS = tuple(seeds.SEEDS)


def mutant(kind: str, seed: int, number: int) -> bytes:
    """Returns the damaged file with this number; it depends only on `kind`, `seed` and `number`."""
    rng = random.Random(f"{seed}/{kind}/{number}")
    data = rng.choice(seeds.SEEDS[kind]())
    by_schema = _SCHEMA.get(kind)
    if by_schema is not None and rng.random() < _BY_SCHEMA:
        return by_schema(data, rng)
    return damage.any_bytes(data, rng)


def attempt(kind: str, number: int, data: bytes, folder: Path) -> Outcome:
    """Passes the damaged file to buildtool, and returns the result. `folder` is for temporary files."""
    before = _peak()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            outcome = _ATTEMPTS[kind](number, data, folder)
        except BuildtoolError as error:
            outcome = _judged(1, "", error.message())
        except MemoryError:
            outcome = Outcome("memory", "MemoryError")
        except Exception as error:
            outcome = Outcome("traceback", _place(error))
    if warned and not outcome.is_bad:
        first = warned[0]
        outcome = Outcome("warning", f"{Path(first.filename).name}:{first.lineno}: {first.message}")
    if _peak() - before > MOST_MEMORY and not outcome.is_bad:
        outcome = Outcome("memory", f"{(_peak() - before) >> 20} MB")
    return outcome


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _place(error: BaseException) -> str:
    """Returns the place where an exception was raised, in buildtool's code if possible, and its type."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/buildtool/" in f.filename or "/buildtool_plugins/" in f.filename]
    last = (ours or frames)[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}: {type(error).__name__}: {error}"[:200]


def _judged(status: int, out: str, err: str) -> Outcome:
    """Returns the outcome of a command, judged by its exit status and its output."""
    if status == 0:
        return Outcome("accepted") if out.strip() else Outcome("silent", "status 0")
    if status == 70:
        last = [line for line in (err or out).splitlines() if "internal error" in line]
        return Outcome("traceback", last[0][:200] if last else "status 70")
    words = err
    if not err:
        try:
            told = json.loads(out)["error"]
            words = f"error: {told['text']} [{told['code']}]" if told["text"] else ""
        except (ValueError, KeyError):
            words = ""
    if "error: " not in words or "Traceback" in words or "]" not in words:
        return Outcome("silent", f"status {status}: {words[:100]!r}")
    return Outcome("refused", words[words.rindex("[") + 1 : words.rindex("]")] if "[" in words else "")


def _command(words: list[str]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(words)
    return _judged(status, out.getvalue(), err.getvalue())


def _on_disk(suffix: str, ways: list[list[str]]) -> Callable[[int, bytes, Path], Outcome]:
    """Returns a function that writes the file to disk, and runs one of some commands on it.

    The file's number selects the command; "FILE" in it is replaced by the path.
    """

    def run(number: int, data: bytes, folder: Path) -> Outcome:
        path = folder / f"file{suffix}"
        path.write_bytes(data)
        words = ways[number % len(ways)]
        return _command([str(path) if word == "FILE" else word for word in words])

    return run


_LAYERWISE = ["plan", "FILE", "-b", "cortex-m4", "--strategy", "layerwise"]
_MODELS = [
    *([_LAYERWISE] * 4),
    [*_LAYERWISE, "--json"],
    ["plan", "FILE", "-b", "cortex-m55", "--ram", "48K"],
    ["plan", "FILE", "-b", "host", "--objective", "ram", "--image", "stream"],
    ["analyze", "FILE", "-b", "hifive1"],
]


@functools.cache
def _model_file(folder: Path) -> str:
    path = folder / "net.tflite"
    path.write_bytes(seeds.tflite()[0])
    return str(path)


def _board(number: int, data: bytes, folder: Path) -> Outcome:
    path = folder / "board.toml"
    path.write_bytes(data)
    words = ["plan", _model_file(folder), "-b", str(path), "--strategy", "layerwise"]
    return _command([*words, "--json"] if number % 4 == 0 else words)


def _npy(number: int, data: bytes, folder: Path) -> Outcome:
    from_file(_graph(), File("input.npy", data=data))
    return Outcome("accepted")


@functools.cache
def _graph() -> seeds.g.Graph:
    return read_model(seeds.tflite()[0])


def _plan(number: int, data: bytes, folder: Path) -> Outcome:
    plans.made_by(data, seeds.subjects())
    return Outcome("accepted")


_checker = Checker()


def _image(number: int, data: bytes, folder: Path) -> Outcome:
    status = _checker.status(data)
    if status == "100":
        return Outcome("accepted")
    return Outcome("refused", status) if status.isdecimal() else Outcome("crash", status[:200])


_ATTEMPTS: dict[str, Callable[[int, bytes, Path], Outcome]] = {
    "tflite": _on_disk(".tflite", _MODELS),
    "onnx": _on_disk(".onnx", [*_MODELS, ["analyze", "FILE"]]),
    "board": _board,
    "npy": _npy,
    "plan": _plan,
    "image": _image,
    "elf": _on_disk(".elf", [["sizes", "FILE", "-b", "cortex-m4"]]),
    "cfg": _on_disk(".cfg", [["analyze", "FILE"]]),
    "csv": _on_disk(".csv", [["arena", "FILE", "--budget", "500"]]),
}
