"""How fast a sweep plans a family of networks: CPU seconds for each candidate, as the sweep goes on.

    python benchmarks/sweeping.py [--candidates 300] [--processes 1 2] [--board B] [--ram 64K]
        [--image stream]

The family is MobileNetV2 with other widths, resolutions and numbers of blocks in its stages, in a seeded
order. Its weights are random, so the networks are planned with `simplify=structure`: what random weights
allow says nothing about trained ones. Each sweep has a cache of its own, empty at first. The time for making
networks is counted beside that for planning. CPU seconds are those of the processes, since other programs may
use the machine.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from buildtool.fronts.sweep import worker
from buildtool.fronts.sweep.candidates import Job, batches, study_of
from buildtool.fronts.sweep.running import Processes, batch_size, run
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.zoo.drawn import NetBuilder
from buildtool.zoo.networks import round_channels

# Expansion, channels and stride of MobileNetV2's stages, and the numbers of blocks that a stage may have.
STAGES = (
    *((1, 16, 1, (1,)), (6, 24, 2, (1, 2, 3)), (6, 32, 2, (2, 3, 4)), (6, 64, 2, (2, 3, 4))),
    *((6, 96, 1, (1, 2, 3)), (6, 160, 2, (1, 2, 3)), (6, 320, 1, (1,))),
)
WIDTHS = ("0.25", "0.35", "0.5", "0.75", "1.0")
SIZES = (64, 80, 96, 112, 128, 144, 160, 176, 192, 224)


def mobilenet(size: int, width: str, blocks: Sequence[int]) -> bytes:
    """Returns the file of a MobileNetV2 with 10 outputs and drawn weights."""
    net, relu = NetBuilder(0, "mobilenetv2"), Activation.RELU6
    channels = [round_channels(Fraction(stage[1]) * Fraction(width)) for stage in STAGES]
    first = round_channels(32 * Fraction(width))
    image = net.input((1, size, size, 3))
    x = net.conv(image, first, kernel=(3, 3), stride=(2, 2), same=True, activation=relu)
    for (expansion, _, stride, _), out, count in zip(STAGES, channels, blocks, strict=True):
        for block in range(count):
            step = 1 if block else stride
            y = x if expansion == 1 else net.conv(x, net.shape(x)[3] * expansion, activation=relu)
            window: dict[str, Any] = {"kernel": (3, 3), "stride": (step, step), "same": True}
            y = net.conv(y, 0, **window, activation=relu, depth_multiplier=1)
            y = net.conv(y, out)
            x = net.elementwise(OpKind.ADD, x, y) if block else y
    x = net.mean(net.conv(x, 1280, activation=relu))
    return write_model(net.graph([net.dense(x, 10)]))


def family(count: int) -> list[tuple[str, partial[bytes]]]:
    """Returns the names and makers of `count` networks. Neighbours have the same width and resolution."""
    depths = list(itertools.product(*(stage[3] for stage in STAGES)))
    bases = list(itertools.product(SIZES, WIDTHS))
    random.Random(0).shuffle(depths)
    random.Random(1).shuffle(bases)
    each = max(25, -(-count // len(bases)))
    members = [(size, width, blocks) for size, width in bases for blocks in depths[:each]][:count]
    return [
        (f"{size}-{width}-{''.join(map(str, blocks))}", partial(mobilenet, size, width, blocks))
        for size, width, blocks in members
    ]


def measured(jobs: Sequence[Job]) -> list[tuple[str, dict[str, Any]]]:
    """Returns the rows of a batch as `worker.run_batch` does, with CPU seconds and memory in each row."""
    begin = time.process_time()
    made = [Job(job.key, job.about, _with_network(job)) for job in jobs]
    built = time.process_time()
    rows = worker.run_batch(made)
    end = time.process_time()
    figures = {"made": (built - begin) / len(jobs), "planned": (end - built) / len(jobs), "pid": os.getpid()}
    figures |= {"rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}
    return [(key, {**row, **figures}) for key, row in rows]


def _with_network(job: Job) -> tuple[tuple[str, dict[str, Any]], ...]:
    model = {"name": "mobilenetv2.tflite", "data": job.make() if job.make else b""}
    return tuple((step, {**request, "model": model}) for step, request in job.requests)


def sweep(count: int, processes: int, board: str, options: dict[str, Any]) -> None:
    """Runs a sweep with an empty cache, and prints the curve and the mean."""
    study = study_of(family(count), [board], options, [], Path.cwd())
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BUILDTOOL_CACHE_DIR"] = f"{folder}/cache"
        pool = Measured(processes)
        begin = time.monotonic()
        try:
            for batch in run(batches(study.jobs(), batch_size(study, pool.width), processes), pool):
                rows += [row for _, row in batch]
        finally:
            pool.close()
        wall = time.monotonic() - begin
    failed = sum(row["status"] == "failed" for row in rows)
    print(f"{processes} process(es), {count:,} candidates, {failed} failed\n")
    print("| candidates | planned, CPU s each | networks made, CPU s each | largest process, MiB |")
    print("| --- | ---: | ---: | ---: |")
    for part in range(6):
        own = rows[part * len(rows) // 6 : (part + 1) * len(rows) // 6]
        if own:
            at = f"{part * len(rows) // 6 + 1:,} to {(part + 1) * len(rows) // 6:,}"
            times = f"{mean(own, 'planned'):.3f} | {mean(own, 'made'):.3f}"
            print(f"| {at} | {times} | {max(row['rss'] for row in own)} |")
    cpu = sum(row["planned"] + row["made"] for row in rows)
    print(f"\nmean: planned {mean(rows, 'planned'):.3f} CPU s, made {mean(rows, 'made'):.3f} CPU s")
    print(f"all: {cpu:.1f} CPU s in {wall:.1f} s of wall time: {cpu / wall:.2f} cores at work\n", flush=True)


class Measured(Processes):
    """Processes that measure what a batch takes."""

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Starts a batch and returns the future of its rows."""
        return self._pool.submit(measured, jobs)


def mean(rows: Sequence[dict[str, Any]], name: str) -> float:
    """Returns the mean of a figure."""
    return float(sum(row[name] for row in rows) / len(rows))


def main() -> None:
    """Prints a table for each number of processes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--ram", help="limit; the default is the board's own memory")
    parser.add_argument("--image", default="overwritable", help="stream: the image comes row by row")
    given = parser.parse_args()
    options = {"simplify": "structure", "image": given.image} | ({"ram": given.ram} if given.ram else {})
    for processes in given.processes:
        sweep(given.candidates, processes, given.board, options)


if __name__ == "__main__":
    main()
