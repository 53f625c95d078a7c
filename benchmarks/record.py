"""A record of what a change of structure must not change: digests of plans, sources, images, answers.

    python benchmarks/record.py --out before.json                 # on the old tree; --quick: small networks
    python benchmarks/record.py --out after.json --against before.json
    python benchmarks/record.py --compare before.json after.json  # without running anything

Each request has one entry: the network, the board, the options, and the SHA-256 of every part of its answer
(each file by its name, the plain values together). A request that is refused has the error's text instead.
Answers are made in this process without a cache, so that the record shows what the present code computes. The
exit status is 1 if two records differ; each difference is printed with the parts that differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Image, Strategy
from buildtool.base.session import Session
from buildtool.target.registry import board_names

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
SMALL = ("ds_cnn", "autoencoder", "resnet8", "mcunet_vww5", "mobilenetv1_025_96")
QUICK_BOARDS = ("cortex-m4", "cortex-m55", "hifive1", "esp8266", "qemu-virt-rv32v", "xcore")
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    *({"image": str(image)} for image in Image),
    *({"strategy": str(strategy)} for strategy in Strategy),
    {"objective": "ram"},
    {"objective": "ram", "image": "stream", "max_f": 1.1},
    {"ram": 32768, "image": "stream"},
)
_VOLATILE = ("depends", "kernel_sources", "include", "kernel_includes")  # paths of this checkout


def main() -> int:
    """Makes a record, compares two records, or both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where to write the record")
    parser.add_argument("--against", type=Path, help="an earlier record to compare the new one with")
    parser.add_argument("--compare", type=Path, nargs=2, help="two records to compare, without making one")
    parser.add_argument("--quick", action="store_true", help="small networks and a board of each family")
    args = parser.parse_args()
    if args.compare:
        before, after = (json.loads(path.read_text()) for path in args.compare)
        return report(before, after)
    made = dict(entries(quick=args.quick))
    if args.out:
        args.out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    return report(json.loads(args.against.read_text()), made) if args.against else 0


def entries(*, quick: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the name of each request, and the digests of the parts of its answer."""
    for model in networks(quick=quick):
        session = Session()
        for request in requests(model, QUICK_BOARDS if quick else board_names()):
            words = [str(request["kind"]), Path(model).name, str(request.get("board", ""))]
            words += [f"{name}={value}" for name, value in request.get("options", {}).items()]
            yield " ".join(filter(None, words)), parts(request, session)
        print(Path(model).name, file=sys.stderr)


def networks(*, quick: bool) -> list[str]:
    """Returns names of zoo networks and absolute paths of model files."""
    files = sorted(map(str, MODELS.glob("*.tflite"))) if not quick else []
    return [*(name for name in zoo.names() if not quick or name in SMALL), *files]


def requests(model: str, boards: Iterator[str] | tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yields the requests about a network."""
    yield {"kind": "analyze", "model": model}
    for board in boards:
        for options in OPTIONS:
            asked = {"model": model, "board": board, **({"options": options} if options else {})}
            yield {"kind": "plan", **asked}
            if len(options) < 2:
                yield {"kind": "emit", **asked}
        yield {"kind": "front", "model": model, "board": board}
        yield {"kind": "describe", "model": model, "board": board}


def parts(request: Mapping[str, Any], session: Session) -> dict[str, str]:
    """Returns the SHA-256 of each file of the answer and of its other values, or the text of a refusal."""
    try:
        answer = handle(request, session)
    except BuildtoolError as error:
        return {"refused": f"{error.code}: {error.text}"}
    files = answer.pop("files", {}) or {}
    if "locked" in answer:
        files = {**files, "locked": answer.pop("locked")}
    plain = {name: value for name, value in answer.items() if name not in _VOLATILE}
    text = json.dumps(plain, sort_keys=True, default=repr).replace(
        str(Path(__file__).resolve().parents[1]), ""
    )
    digests = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in files.items()}
    return {**digests, "answer": hashlib.sha256(text.encode()).hexdigest()[:16]}


def report(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> int:
    """Prints the differences between two records; returns 1 if there are any."""
    shared = [name for name in before if name in after]
    changed = 0
    for name in shared:
        old, new = before[name], after[name]
        differing = sorted(part for part in {*old, *new} if old.get(part) != new.get(part))
        if differing:
            changed += 1
            print(f"{name}: {', '.join(differing)}")
    apart = len({*before} ^ {*after})
    print(f"{len(shared):,} requests in both records, {changed:,} differ, {apart:,} in one of them only")
    return 1 if changed or apart else 0


if __name__ == "__main__":
    raise SystemExit(main())
