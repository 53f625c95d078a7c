"""The command: every system on one file, as a table."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import statistics
import sys
from pathlib import Path

from benchmarks.peers.environments import Unavailable
from benchmarks.peers.systems import SYSTEMS, Row

# Segments that were tried for this file (MobileNetV2-160 of XMOS's application note), by its SHA-256.
KNOWN = {
    "f4399aec7013": ["0-14x10", "0-6x8,7-14x4,15-26x2", "0-6x20,7-14x10,15-22x4"],
}


def main() -> int:
    """Prints a Markdown table, and the systems left out with the reason.

    Returns the exit status, 1 if buildtool itself failed.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("model", type=Path, help="a .tflite file")
    parser.add_argument("--segments", action="append", help="strips to try, such as 0-6x20,7-14x10")
    parser.add_argument("--only", action="append", choices=SYSTEMS, help="leave the others out")
    parser.add_argument("--rounds", type=int, default=3, help="times that all of them run, in turn")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    model = args.model.resolve()
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    segments = args.segments or KNOWN.get(digest[:12], [])
    runs: list[Row] = []
    skipped: dict[str, str] = {}
    for number in range(args.rounds):
        for name in args.only or SYSTEMS:
            if name in skipped:
                continue
            try:
                for row in SYSTEMS[name](model, segments):
                    runs.append(row)
                    print(f"{number}: {row.system}: {row.setting}: {row.bytes:,}", file=sys.stderr)
            except Unavailable as error:
                skipped[name] = str(error)
    rows = medians(runs)
    if args.json:
        answer = {"model": model.name, "sha256": digest, "rows": [dataclasses.asdict(r) for r in rows]}
        print(json.dumps(answer | {"skipped": skipped}, indent=1))
    else:
        print(table(rows))
        for name, reason in skipped.items():
            print(f"\nleft out: {name}: {reason}")
    return 1 if "buildtool" in skipped else 0


def medians(runs: list[Row]) -> list[Row]:
    """Returns one row for each system and setting, with the medians of CPU seconds and memory."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in runs:
        found.setdefault((row.system, row.setting, row.bytes, row.accounting, row.f), []).append(row)
    return [
        dataclasses.replace(
            same[0],
            seconds=statistics.median(row.seconds for row in same),
            peak=int(statistics.median(row.peak for row in same)),
        )
        for same in found.values()
    ]


def table(rows: list[Row]) -> str:
    """Returns a Markdown table. CPU seconds and memory are those of the process that plans or compiles."""
    lines = [
        "| system | setting | bytes | what they count | F | CPU seconds | process, MB |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: |",
    ]
    for r in rows:
        f = "not told" if r.f is None else f"{r.f:.3f}"
        lines.append(
            f"| {r.system} | {r.setting} | {r.bytes:,} | {r.accounting} | {f} | {r.seconds:.1f} "
            f"| {r.peak / 1e6:.0f} |"
        )
    return "\n".join(lines)


sys.exit(main())
