"""Random edits, each answered from what earlier ones have left and from nothing: both have to be equal.

    python -m benchmarks.stale --count 300
    python -m benchmarks.stale --builds 30

The same files are asked about with a session that lives on (a daemon's), with one that has the disk alone
(a process of its own), and with one that has nothing. Answers to plan, front, emit and describe, and
errors, are compared byte for byte. What differs is printed, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgpack

from benchmarks.stale import builds
from benchmarks.stale.projects import Project, edited
from buildtool.api import handle, handle_cached
from buildtool.base.errors import BuildtoolError, to_data
from buildtool.base.session import Session
from buildtool.base.store.cache import Cache

KINDS = ("plan", "front", "emit", "describe")


def main() -> int:
    """Prints the differences and the counts; returns 1 if there are differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="edits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--builds", type=int, default=0, help="edits that SCons builds, instead (see builds.py)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.builds:
            found = builds.compare(Path(folder), args.builds, args.seed)
        else:
            found = compare(Path(folder), args.count, args.seed, show=True)
    print(", ".join(f"{number:.0f} {what}" for what, number in sorted(found.items())))
    return 1 if found["differ"] else 0


def compare(folder: Path, count: int, seed: int, show: bool = False) -> Counter[str]:
    """Edits a project repeatedly, and compares answers from the cache with freshly computed ones.

    Returns the counts of edits, errors and equal or different answers, and the CPU seconds.
    """
    draw = random.Random(seed)
    found: Counter[str] = Counter()
    daemon = Session(keeper=Cache(folder / "cache", "code"))
    history = [Project()]
    for _ in range(count):
        last = draw.choice(history[-4:])  # people go back, too
        history.append(edited(last, draw))
        project = history[-1]
        try:
            project.write(folder)
        except (AssertionError, ValueError, KeyError, IndexError):
            history.pop()
            continue
        found["edits"] += 1
        for kind in KINDS:
            request = asked(project, folder, kind)
            cold = answer_of(request, Session(), found, "seconds cold")
            found["errors" if b"error" in cold[:20] else "answers"] += 1
            for name, session in (
                ("daemon", daemon),
                ("disk", Session(keeper=Cache(folder / "cache", "code"))),
            ):
                warm = answer_of(request, session, found, f"seconds {name}")
                found["equal" if warm == cold else "differ"] += 1
                if warm != cold and show:
                    print(f"{kind} ({name}) differs after '{project.edit}': {project}", flush=True)
                    print(f"   cold {cold[:300]!r}\n   warm {warm[:300]!r}")
    return found


def asked(project: Project, folder: Path, kind: str) -> dict[str, Any]:
    """Returns a request about the project's files, with their digests, as a client sends it."""
    request: dict[str, Any] = {"kind": kind}
    for key, path in (("model", folder / "net.tflite"), ("board", folder / "mine.toml")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        request[key] = {"path": str(path), "sha256": digest}
    if kind in ("emit", "describe"):
        request["name"] = project.net
    if kind == "describe":
        return request
    options = dict(project.options)
    if kind == "front":
        options = {
            k: v for k, v in options.items() if k in ("image", "in_place", "hand_off", "order", "max_f")
        }
    return {**request, "options": options}


def answer_of(request: dict[str, Any], session: Session, found: Counter[str], what: str) -> bytes:
    """Returns the bytes of the answer or of its error; adds the CPU seconds to `found`."""
    began = time.process_time()
    try:
        if session.keeper is None:
            told: dict[str, Any] = handle(request, session)
        else:
            told = handle_cached(request, session)
    except BuildtoolError as error:
        told = {"error": to_data(error)}
    found[what] += time.process_time() - began  # type: ignore[assignment]
    packed: bytes = msgpack.packb(told, use_bin_type=True)
    return packed


if __name__ == "__main__":
    sys.exit(main())
