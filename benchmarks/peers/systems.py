"""The peers and ourselves: how each is run on a file, and what is read from what it says."""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import Unavailable, environment
from benchmarks.peers.measure import measured

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """One run: the arena's bytes and what they include, relative work F (None: unknown), time and memory."""

    system: str
    setting: str
    bytes: int
    accounting: str
    f: float | None
    seconds: float
    peak: int


# ---- tflite-micro ----------------------------------------------------------------------------------

_TFLM = """
import sys
from tflite_micro.python.tflite_micro import runtime
runtime.Interpreter.from_file(sys.argv[1]).print_allocations()
"""


def tflite_micro(model: Path, _segments: Sequence[str]) -> Iterator[Row]:
    """Yields a row for TFLM's interpreter: a greedy arena, whole operators."""
    place = environment("tflite-micro", "0.dev20261023182759")
    with tempfile.TemporaryDirectory() as folder:
        run = measured([place.python, "-c", _TFLM, str(model)], folder)
    head = re.search(r"Arena allocation head (\d+) bytes", run.text)
    total = re.search(r"Arena allocation total (\d+) bytes", run.text)
    if head is None or total is None:
        raise Unavailable("it printed no allocations")
    note = f"activations and kernel scratch; {int(total[1]) - int(head[1]):,} of its own structures beside"
    yield Row("tflite-micro", "interpreter", int(head[1]), note, 1.0, run.seconds, run.peak)


# ---- ethos-u-vela ----------------------------------------------------------------------------------


def vela(model: Path, _segments: Sequence[str]) -> Iterator[Row]:
    """Yields rows for Arm's compiler for its NPU: cascades of operators with rolling buffers."""
    place = environment("ethos-u-vela", "5.2.0")
    for goal in ("Performance", "Size"):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--accelerator-config", "ethos-u55-256", "--optimise", goal, "--output-dir", folder]
            run = measured([place.command("vela"), str(model), *words], folder)
            (summary,) = Path(folder).glob("*_summary_*.csv")
            with summary.open(newline="") as file:
                (row,) = csv.DictReader(file)
        size = round(float(row["sram_memory_used"]) * 1024)
        note = "SRAM of an Ethos-U55-256: activations and weight buffers of the NPU"
        yield Row("ethos-u-vela", f"--optimise {goal}", size, note, None, run.seconds, run.peak)


# ---- xmos-ai-tools ---------------------------------------------------------------------------------


def xcore_opt(model: Path, segments: Sequence[str]) -> Iterator[Row]:
    """Yields rows for XMOS's compiler: whole operators, or strips with recomputed halos for `segments`."""
    place = environment("xmos-ai-tools", "1.4.2")
    settings = [("unsplit", ""), *((text, text) for text in segments)]
    for external in (False, True):
        for name, text in settings:
            with tempfile.TemporaryDirectory() as folder:
                words = [*_split(text), *(["-f", f"{folder}/weights"] if external else [])]
                out = ["-o", f"{folder}/out.tflite", "--xcore-conv-err-threshold=2.1"]
                run = measured([place.command("xcore-opt"), str(model), *out, *words], folder)
            size = re.search(r"Tensor arena size : (\d+)", run.text)
            if size is None:
                raise Unavailable("it printed no arena size")
            note = "activations, " + ("and weights loaded from flash" if external else "weights elsewhere")
            yield Row("xcore-opt", name, int(size[1]), note, None if text else 1.0, run.seconds, run.peak)


def _split(text: str) -> list[str]:
    """Returns the tool's options for segments such as 0-6x20,7-14x10."""
    if not text:
        return []
    parts = [re.fullmatch(r"(\d+)-(\d+)x(\d+)", word) for word in text.split(",")]
    if None in parts:
        raise SystemExit(f"no segments: {text}")
    first, last, strips = zip(*(part.groups() for part in parts if part), strict=True)
    return [
        "--xcore-op-split-tensor-arena",
        f"--xcore-op-split-top-op={','.join(first)}",
        f"--xcore-op-split-bottom-op={','.join(last)}",
        f"--xcore-op-split-num-splits={','.join(strips)}",
    ]


# ---- ourselves -------------------------------------------------------------------------------------


def ours(model: Path, segments: Sequence[str]) -> Iterator[Row]:
    """Yields rows for buildtool's strategies, on host (weights in place) and xcore (loaded from flash)."""
    strips = ["--strategy", "xcore-strips"]
    settings: list[tuple[str, str, list[str]]] = [
        ("layerwise", "host", ["--strategy", "layerwise"]),
        *((f"strips {text}", "host", [*strips, "--segments", text]) for text in segments),
        ("strips, searched", "host", strips),
        ("msf-cnn, F <= 1.3", "host", ["--strategy", "msf-cnn", "--max-f", "1.3"]),
        ("best, F <= 1", "host", ["--objective", "ram", "--max-f", "1"]),
        ("best, F <= 1.1", "host", ["--objective", "ram", "--max-f", "1.1"]),
        (
            "best, F <= 1.1, image by rows",
            "host",
            ["--objective", "ram", "--max-f", "1.1", "--image", "stream"],
        ),
        *(
            (f"strips {text}", "xcore", [*strips, "--segments", text, "--objective", "ram"])
            for text in segments
        ),
        ("best, F <= 1.1", "xcore", ["--objective", "ram", "--max-f", "1.1"]),
    ]
    for name, board, words in settings:
        command = [
            sys.executable,
            "-m",
            "buildtool",
            "plan",
            str(model),
            "--board",
            board,
            "--json",
        ]
        with tempfile.TemporaryDirectory() as folder:
            run = measured([*command, *words], folder, {"PYTHONPATH": str(ROOT)})
        plan = json.loads(run.text)
        if board == "host":
            note = "activations and kernel scratch, weights elsewhere"
        else:
            note = "activations, kernel scratch and weights loaded from flash"
        if plan["image"] == "stream":
            note += "; no whole image"
        yield Row("buildtool", name, plan["arena_bytes"], note, plan["f"], run.seconds, run.peak)


SYSTEMS: dict[str, Callable[[Path, Sequence[str]], Iterator[Row]]] = {
    "tflite-micro": tflite_micro,
    "ethos-u-vela": vela,
    "xmos-ai-tools": xcore_opt,
    "buildtool": ours,
}
