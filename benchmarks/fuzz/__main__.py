"""The command: mutants of every kind, sorted by what came of them, as a table; 1 where any is bad."""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzz import seeds
from benchmarks.fuzz.attempts import KINDS, Outcome, attempt, mutant
from benchmarks.fuzz.workers import run

# Shares of all mutants, in hundredths; what users bring from elsewhere has most of them.
SHARES = {
    **{"tflite": 40, "onnx": 20, "board": 14, "plan": 10, "npy": 6, "image": 4},
    **{"elf": 2, "cfg": 2, "csv": 2},
}


def _work(kind: str, seed: int, number: int, folder: Path) -> Outcome:
    return attempt(kind, number, mutant(kind, seed, number), folder)


def main() -> int:
    """Prints the table, and each bad result to standard error as soon as it occurs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="mutants, of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=KINDS)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant of each kind")
    parser.add_argument("--firmware", type=int, default=0, help="accepted networks to compile and run")
    parser.add_argument("--write", metavar="KIND:NUMBER", help="write this mutant to standard output")
    parser.add_argument("--json", type=Path, help="a file for all counts and all that is bad")
    args = parser.parse_args()
    if args.write:
        kind, _, number = args.write.partition(":")
        sys.stdout.buffer.write(mutant(kind, args.seed, int(number)))
        return 0
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["BUILDTOOL_DAEMON"] = "off"  # the children are limited and watched, a daemon is not
    kinds = args.only or list(KINDS)
    whole = sum(SHARES[kind] for kind in kinds)
    found: dict[str, Counter[str]] = {}
    bad: list[tuple[str, int, str, str]] = []
    accepted: list[tuple[str, int]] = []
    begun = time.monotonic()
    for kind in kinds:
        found[kind] = Counter()
        seeds.SEEDS[kind]()
        numbers = range(args.first, args.first + args.count * SHARES[kind] // whole)
        for number, outcome in run(functools.partial(_work, kind, args.seed), numbers):
            found[kind][outcome.what if not outcome.is_bad else "bad"] += 1
            if outcome.is_bad:
                bad.append((kind, number, outcome.what, outcome.detail))
                print(f"{kind}:{number}: {outcome.what}: {outcome.detail}", file=sys.stderr, flush=True)
            elif outcome.what == "accepted" and kind in ("tflite", "onnx", "plan"):
                accepted.append((kind, number))
        print(f"{kind}: {dict(found[kind])}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    print("| kind | mutants | refused | accepted | bad |\n| --- | ---: | ---: | ---: | ---: |")
    for kind, counts in found.items():
        row = (counts.total(), counts["refused"], counts["accepted"], counts["bad"])
        print(f"| {kind} | " + " | ".join(f"{n:,}" for n in row) + " |")
    ran: dict[str, int] = {}
    if args.firmware:
        from benchmarks.fuzz.firmware import sample

        ran, worse = sample(accepted, args.seed, args.firmware)
        bad += worse
        print(f"\naccepted networks run: {ran}")
    if args.json:
        told = {"kinds": found, "firmware": ran, "bad": bad, "seed": args.seed}
        args.json.write_text(json.dumps(told, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
