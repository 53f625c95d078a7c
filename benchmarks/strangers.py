"""Plans, runs and compares public networks that no test has seen: python benchmarks/strangers.py FOLDER

FOLDER has .tflite and .onnx files at any depth. strangers.toml lists files by repository, path and SHA-256;
nothing is downloaded. `--unlisted` takes other files as well. A file is planned for a board of every family
(BOARDS), by default and for the least RAM. Then it runs: on the host up to `--most-macs`, and on emulated
boards, if the list marks it for that, up to `--most-emulated`. Every tensor of every run is compared with
LiteRT's reference kernels. Inputs are random; if a network takes an image, there is an image of `--data` as
well: a folder or an archive of .png, .jpg and .npy files (../shared/data by default).

Printed, in Markdown, are a row for each file (operators, bytes, verdict on each board, least RAM), rows for
what is wrong (unexpected exceptions, more than 10 CPU seconds, tensors that differ), and totals. Results are
kept below `--kept`, by the commit and the file's digest, and not made again; `--head` prints those of another
commit. `--costs` prints instead what costs predict beside what is counted, for the files that the list holds
out: no fit has used them; with `--head`, the counts of another commit. Nothing else is written.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from instructions import in_instructions

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Resize, Strategy
from buildtool.base.session import Session
from buildtool.firmware.datasets.pixels import MODES, image
from buildtool.firmware.planned import plan_model as plan_of
from buildtool.graph.types import Graph
from buildtool.options.values import PlanOptions
from buildtool.plan.models import load_model, read_graph

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "benchmarks" / "strangers.toml"
IMAGES = ROOT.parent / "shared" / "data" / "cifar10_test.tar.xz"
KEPT = Path(tempfile.gettempdir()) / "strangers-kept"
LX106 = str(ROOT / "tests/support/boards/esp8266-large.toml")
BOARDS = {
    "host": "host",
    "M4": "cortex-m4",
    "M55": "cortex-m55",
    "RV32": "qemu-virt-rv32",
    "RV32V": "qemu-virt-rv32v",
    "LX106": LX106,
    "xcore": "xcore",
}
SLOW = 10.0  # CPU seconds of a plan
CPU_LIMIT, MEMORY_LIMIT = 180, 12 << 30  # of all that is done with a file on a board: seconds, bytes
LEAST_SIDE = 8  # pixels of an input that counts as an image
FEW_MACS = 20_000_000  # of a network that runs on the host on both kinds of data
MOST_IMAGES = 64  # among which those of a file are drawn
COST_BOARDS = {"M4": "cortex-m4", "M55": "cortex-m55"}
UNITS = ("instructions", "cycles")
WITHIN = 0.05  # of what is counted: what a cost is meant to be
Row = dict[str, Any]


@dataclass(frozen=True)
class Stranger:
    """A model file: its path, its name in the list, its SHA-256, and its marks in the list.

    `emulated` means that it runs on every board. `held_out` means that it tests the costs, and that no fit
    may use it.
    """

    path: Path
    name: str
    sha256: str
    emulated: bool = False
    held_out: bool = False


def strangers(folder: Path, listed: Path, unlisted: bool) -> list[Stranger]:
    """Returns the model files in the folder: first the listed ones in order, then the others by path.

    Of files with the same content, only one is returned.
    """
    rows = tomllib.loads(listed.read_text(encoding="utf-8"))["file"] if listed.exists() else []
    known = {row["sha256"]: (number, row) for number, row in enumerate(rows)}
    found: dict[str, tuple[int, Stranger]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".tflite", ".onnx") and p.is_file()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        number, row = known.get(digest, (len(rows), {}))
        if digest in found or not (row or unlisted):
            continue
        name = f"{row['repository']}: {row['path']}" if row else str(path.relative_to(folder))
        marks = {mark: bool(row.get(mark)) for mark in ("emulated", "held_out")}
        found[digest] = (number, Stranger(path, name, digest, **marks))
    missing = len(rows) - sum(digest in found for digest in known)
    if missing:
        print(f"{missing} of the {len(rows)} listed files are not below {folder}", file=sys.stderr)
    return [stranger for _, stranger in sorted(found.values(), key=lambda pair: pair[0])]


def head() -> str:
    """Returns the commit, and a digest of the uncommitted changes in the product's folders."""
    git = ("git", "-C", str(ROOT))
    commit = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    )
    rooms = ("buildtool", "plugins", "kernels")
    changed = subprocess.run([*git, "diff", "HEAD", "--", *rooms], capture_output=True, check=True).stdout
    return commit.stdout.strip() + (f"+{hashlib.sha256(changed).hexdigest()[:8]}" if changed else "")


# What is done with a file


@cache
def pictures(data: Path) -> tuple[tuple[str, bytes], ...]:
    """Returns (name, bytes) of image and .npy files in a folder or an archive, drawn with a fixed seed."""
    wanted = (".png", ".jpg", ".jpeg", ".bmp", ".npy")
    if data.is_dir():
        paths = sorted(p for p in data.rglob("*") if p.suffix.lower() in wanted)
        chosen = random.Random(1).sample(paths, min(MOST_IMAGES, len(paths)))
        return tuple((str(path), path.read_bytes()) for path in chosen)
    if not data.is_file():
        return ()
    with tarfile.open(data) as archive:
        found = [(member.name, file.read()) for member in archive if (file := archive.extractfile(member))]
    found = sorted(pair for pair in found if pair[0].lower().endswith(wanted))
    return tuple(random.Random(1).sample(found, min(MOST_IMAGES, len(found))))


def real(graph: Graph, digest: str, data: Path) -> np.ndarray | None:
    """Returns data for a network with one input: an array of the same size, or an image; else None.

    An image's pixel values from 0 to 255 become the full range of the input's type.
    """
    if len(graph.inputs) != 1:
        return None
    tensor = graph.tensors[graph.inputs[0]]
    is_image = len(tensor.shape) == 4 and tensor.shape[0] == 1 and tensor.shape[-1] in MODES
    is_image &= min(tensor.shape[1:3], default=0) >= LEAST_SIDE
    suiting = []
    for name, content in pictures(data):
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(content))
            suiting += [array] if array.size == tensor.elements and array.dtype == tensor.dtype.value else []
        elif is_image and tensor.dtype.value in ("int8", "int16"):
            suiting.append((name, content))
    if not suiting:
        return None
    drawn = suiting[int(digest[:8], 16) % len(suiting)]
    if isinstance(drawn, np.ndarray):
        return drawn.reshape(tensor.shape)
    pixels = image(drawn[1], tensor, Resize.STRETCH, drawn[0]).astype(np.int32).reshape(tensor.shape)
    values = pixels - 128 if tensor.dtype.value == "int8" else (pixels - 128) * 257
    return np.asarray(values, tensor.dtype.value)


def cpu() -> float:
    """Returns the CPU seconds of this process and of the children that it waited for."""
    own, children = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def guarded(work: Callable[[], Row]) -> Row:
    """Returns the result of `work`, or the code and text of its error; the CPU seconds are added."""
    began = cpu()
    try:
        row = work()
    except BuildtoolError as error:
        row = {"code": error.code, "text": error.message()}
    except Exception as error:  # the finding that this benchmark is made for
        row = {"code": "EXCEPTION", "text": f"{type(error).__name__}: {error}"}
    return row | {"cpu": round(cpu() - began, 2)}


def described(path: Path) -> Row:
    """Returns how many operators of each kind a file has, and the shapes of its inputs."""
    graph = read_graph(load_model(str(path)))[1]
    kinds = Counter(str(op.kind) for op in graph.ops)
    macs_of = [list(graph.tensors[t].shape) for t in graph.inputs]
    return {"operators": dict(sorted(kinds.items())), "inputs": macs_of}


def planned(path: Path, board: str, objective: str) -> Row:
    """Returns the arena, the MACs and the weights' bytes of a plan."""
    options = {"objective": objective} if objective else {}
    answer = handle({"kind": "plan", "model": str(path), "board": board, "options": options}, Session())
    return {"arena": answer["arena_bytes"], "macs": answer["macs"], "weights": answer["flash_bytes"]}


def compared(path: Path, board: str, value: np.ndarray | None) -> Row:
    """Runs the network, and compares every tensor with LiteRT's reference kernels."""
    request: Row = {"kind": "validate", "model": str(path), "board": board, "reference": "litert"}
    request["tensors"] = True
    with tempfile.TemporaryDirectory() as folder:
        if value is not None:
            np.save(Path(folder) / "input.npy", value)
            request["input"] = str(Path(folder) / "input.npy")
        answer = handle(request, Session())
    keys = ("exact", "tensors_compared", "elements_different", "max_abs_diff", "first_difference", "compiler")
    return {key: answer[key] for key in keys} | {"data": "random" if value is None else "real"}


def done_with(stranger: Stranger, board: str, given: argparse.Namespace, send: Callable[[Row], None]) -> None:
    """Plans the file for a board and runs it; sends a row for each step."""
    path = stranger.path
    made = {}
    for objective in ("", "ram"):
        step = f"plan {objective}".strip()
        made[step] = guarded(partial(planned, path, BOARDS[board], objective))
        send({"step": step} | made[step])
    plan = made["plan"]
    runs = board in given.run and (board == "host" or stranger.emulated)
    most = given.most_macs if board == "host" else given.most_emulated
    if "code" in plan or plan["macs"] > most or not runs:
        return
    value = real(read_graph(load_model(str(path)))[1], stranger.sha256, given.data)
    is_light = board == "host" and plan["macs"] <= FEW_MACS
    values = [None, value] if is_light and value is not None else [value]
    for one in values:
        row = guarded(partial(compared, path, BOARDS[board], one))
        send({"step": "run" if one is None else "run real"} | row)


def _child(work: Callable[[Callable[[Row], None]], None], pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    work(pipe.send)


def apart(work: Callable[[Callable[[Row], None]], None]) -> list[Row]:
    """Runs `work` in another process, and returns the rows that it sends.

    If that process dies, the last row says so.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(work, there))
    began, rows = time.monotonic(), []
    process.start()
    there.close()
    try:
        while True:
            rows.append(here.recv())
    except EOFError:
        process.join()
    if process.exitcode:
        text = f"the process ended with {process.exitcode} after the steps {[row['step'] for row in rows]}"
        rows.append({"step": "died", "code": "DIED", "text": text, "cpu": time.monotonic() - began})
    return rows


@dataclass
class Kept:
    """The stored results of one model file at one commit: rows by step or board."""

    path: Path
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, digest: str) -> Kept:
        """Returns the stored results for a digest; empty if there are none."""
        path = folder / f"{digest}.json"
        return cls(path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def get(self, key: str, make: Callable[[], list[Row]], is_new: bool) -> list[Row]:
        """Returns the rows for `key`. If there are none and `is_new`, it makes and stores them."""
        if key not in self.rows and is_new:
            self.rows[key] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
            beside.replace(self.path)
        return self.rows.get(key, [])


# What is printed


@dataclass
class Table:
    """The printed table of files, and the summary below it."""

    boards: Sequence[str]
    wrong: list[str] = field(default_factory=list)
    totals: dict[str, Counter[str]] = field(default_factory=dict)
    compilers: set[str] = field(default_factory=set)

    def head(self) -> str:
        """Returns the first two lines."""
        heads = ["file", "operators", "bytes", *self.boards, "least RAM"]
        return f"| {' | '.join(heads)} |\n| --- |" + " ---: |" * 2 + " --- |" * len(self.boards) + " ---: |"

    def row(self, stranger: Stranger, about: Row, results: Mapping[str, list[Row]]) -> str:
        """Returns the line of one file."""
        size = stranger.path.stat().st_size
        if "code" in about:
            self._look("reading", stranger, [about])
            self.totals.setdefault("refused when read", Counter())[about["code"]] += 1
            cells = [str(about["code"]), *[""] * len(self.boards)]
            return f"| {stranger.name} | | {size:,} | {' | '.join(cells)} |"
        cells = [self._cell(board, stranger, results[board]) for board in self.boards]
        least = [
            r["arena"] for rows in results.values() for r in rows if r["step"] == "plan ram" and "arena" in r
        ]
        ram = f"{min(least):,}" if least else ""
        count = sum(about["operators"].values())
        return f"| {stranger.name} | {count} | {size:,} | {' | '.join(cells)} | {ram} |"

    def _cell(self, board: str, stranger: Stranger, rows: list[Row]) -> str:
        """Returns the cell of a file on a board."""
        if not rows:
            return ""
        self._look(board, stranger, rows)
        counts = self.totals.setdefault(board, Counter())
        by_step = {row["step"]: row for row in rows}
        runs = [row for step, row in by_step.items() if step.startswith("run")]
        self.compilers |= {f"{board}: {row['compiler']}" for row in runs if "compiler" in row}
        codes = [row["code"] for row in rows if "code" in row]
        planned_ = "code" not in by_step.get("plan", {"code": ""})
        counts["planned"] += planned_
        if not planned_:
            counts[codes[0]] += 1
            return str(codes[0])
        if codes:
            counts[codes[0]] += 1
            return str(codes[0])
        if not runs:
            return "planned"
        equal = all(row["exact"] for row in runs)
        counts["equal" if equal else "DIFFER"] += 1
        tensors = runs[0]["tensors_compared"]
        return f"= {tensors}" if equal else "DIFFERS"

    def _look(self, where: str, stranger: Stranger, rows: Sequence[Row]) -> None:
        """Records the errors, slow plans and wrong results of a file on the board `where`."""
        for row in rows:
            about = f"| {stranger.name} | {where}, {row.get('step', '')} |"
            if row.get("code") in ("EXCEPTION", "DIED", "INTERNAL"):
                self.wrong.append(f"{about} {' '.join(row['text'].split())[:300]} |")
            if row.get("step", "").startswith("plan") and row["cpu"] > SLOW:
                self.wrong.append(f"{about} {row['cpu']:.1f} CPU s |")
            if row.get("exact") is False:
                first, most = row["first_difference"], row["max_abs_diff"]
                text = f"{row['elements_different']} elements differ, by {most} at most; first {first}"
                self.wrong.append(f"{about} {text} |")

    def below(self) -> Iterator[str]:
        """Yields what was wrong, and then how many files were planned, run and refused on each board."""
        yield from ["", "| file | where | what is wrong |", "| --- | --- | --- |", *self.wrong, ""]
        yield "| board | " + "planned, run and equal; refusals by code |\n| --- | --- |"
        for board, counts in self.totals.items():
            yield f"| {board} | {', '.join(f'{name} {n}' for name, n in sorted(counts.items()))} |"
        yield f"\nCompiled by {'; '.join(sorted(self.compilers))}."


def reading(stranger: Stranger, send: Callable[[Row], None]) -> None:
    """Reads the file, and sends a row that describes it."""
    send({"step": "read"} | guarded(partial(described, stranger.path)))


def counting(stranger: Stranger, board: str, send: Callable[[Row], None]) -> None:
    """Profiles the file on a board layer by layer, and sends a row with the counts."""
    send({"step": "costs"} | guarded(partial(counted, stranger.path, COST_BOARDS[board])))


def counted(path: Path, board: str) -> Row:
    """Returns the executed instructions, and the cycles that `profile` estimates."""
    request = {"kind": "profile", "model": str(path), "board": board, "options": {"strategy": "layerwise"}}
    answer = handle(request, Session())
    return {unit: answer[unit] for unit in UNITS} | {"exact": answer["exact"]}


def predicted(path: Path, board: str) -> dict[str, float]:
    """Returns the instructions and cycles that planning predicts."""
    made = plan_of(str(path), board, PlanOptions(strategy=Strategy.LAYERWISE), Session())
    instructions = in_instructions(made.plan, made.graph, made.target.board)
    return dict(zip(UNITS, (instructions, made.plan.cost), strict=True))


def costs(files: Sequence[Stranger], given: argparse.Namespace) -> Iterator[str]:
    """Yields a line for each held-out file, and then the errors of all.

    Counts are stored; predictions are computed each time.
    """
    folder, is_new = given.kept / (given.head or head()), not given.head
    yield "| file | " + " | ".join(f"{b} {unit} | counted" for b in COST_BOARDS for unit in UNITS) + " |"
    yield "| --- |" + " ---: | ---: |" * len(UNITS) * len(COST_BOARDS)
    errors: dict[str, list[float]] = {}
    for stranger in (file for file in files if file.held_out):
        cells = []
        for board, name in COST_BOARDS.items():
            make = partial(apart, partial(counting, stranger, board))
            rows = Kept.of(folder, stranger.sha256).get(f"costs {board}", make, is_new)
            row = rows[0] if rows else {}
            said = predicted(stranger.path, name) if UNITS[0] in row else {}
            for unit in said:
                error = said[unit] / row[unit] - 1
                errors.setdefault(f"{board} {unit}", []).append(abs(error))
                cells.append(f"{error:+.1%} | {row[unit]:,.0f}")
            cells += [f"{row['code']} |"] * len(UNITS) if "code" in row else []
        if cells:
            yield f"| {stranger.name} | {' | '.join(cells)} |"
    for title, own in errors.items():
        inside, mean = sum(error <= WITHIN for error in own), sum(own) / len(own)
        text = f"{inside} of {len(own)} files within {WITHIN:.0%}"
        yield f"\n{title}: {text}; {mean:.1%} on average, {max(own):.1%} at most"


def warm(boards: Sequence[str]) -> None:
    """Loads what every file needs, so that its CPU time counts for no file."""
    for board in boards:
        planned(Path("ds_cnn"), BOARDS[board], "ram")
    for module in ("ai_edge_litert.interpreter", "buildtool.firmware.run.validation"):
        importlib.import_module(module)


def results(files: Sequence[Stranger], given: argparse.Namespace) -> Iterator[str]:
    """Yields the lines of the table, each as soon as it is known."""
    table = Table(given.boards)
    if not given.head:
        warm(given.boards)
    folder, is_new = given.kept / (given.head or head()), not given.head
    yield table.head()
    for number, stranger in enumerate(files, 1):
        known = Kept.of(folder, stranger.sha256)
        about = known.get("read", partial(apart, partial(reading, stranger)), is_new)
        if not about:
            continue
        found: dict[str, list[Row]] = {}
        for board in given.boards if "code" not in about[0] else ():
            print(f"{number} of {len(files)}: {stranger.name}, {board}", file=sys.stderr, flush=True)
            work = partial(done_with, stranger, board, given)
            found[board] = known.get(board, partial(apart, work), is_new)
        yield table.row(stranger, about[0], found)
    yield from table.below()


def main() -> None:
    """Parses the command line, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--unlisted", action="store_true")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--boards", nargs="+", choices=[*BOARDS], default=[*BOARDS])
    parser.add_argument("--run", nargs="*", choices=[*BOARDS], default=[*BOARDS])
    parser.add_argument("--most-macs", type=int, default=300_000_000)
    parser.add_argument("--most-emulated", type=int, default=10_000_000, metavar="MACS")
    parser.add_argument("--data", type=Path, default=IMAGES)
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--head", default="")
    parser.add_argument("--only", default="", help="files whose name has this in it")
    given = parser.parse_args()
    files = [s for s in strangers(given.folder, given.list, given.unlisted) if given.only in s.name]
    for line in costs(files, given) if given.costs else results(files, given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
