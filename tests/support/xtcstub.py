"""A STUB of XMOS's XTC tools: programs with their names that record their command lines and build nothing.

This machine's compiler can compile what the recorded lines would, against stubs of the vendor's headers
(tests/support/xtc_stub).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HEADERS = Path(__file__).resolve().parent / "xtc_stub"
_RECORDS = """\
#!{python}
# A STUB: it is not the vendor's program, and makes nothing.
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([{name!r}, os.getcwd(), *sys.argv[1:]]) + "\\n")
{after}
"""
_MAKE = 'os.execv({make!r}, ["make", *sys.argv[1:]])'


def stub_tools(folder: Path, names=("xcc", "xmosar", "xmake", "xflash", "xrun", "xsim"), leaves=b"") -> Path:
    """Makes a folder for PATH with the stubs. `leaves`: the bytes that xcc writes for a program."""
    folder.mkdir()
    log = str(folder / "log.jsonl")
    write = f"""\
if "xcc" == {{name!r}} and "-c" not in sys.argv and {leaves!r}:
    open(sys.argv[sys.argv.index("-o") + 1], "wb").write({leaves!r})"""
    for name in names:
        after = _MAKE.format(make=shutil.which("make")) if name == "xmake" else write.format(name=name)
        path = folder / name
        path.write_text(_RECORDS.format(python=sys.executable, log=log, name=name, after=after))
        path.chmod(0o755)
    return folder


def recorded(folder: Path) -> list[list[str]]:
    """Returns the calls in order: name, folder, arguments."""
    log = folder / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def replayed(calls: list[list[str]], compiler: str, project: Path, program: Path) -> None:
    """Compiles and links on this machine what the recorded calls of xcc would, with stubs of its library."""
    includes = [f"-I{HEADERS}"]
    objects = []
    for _, where, *words in calls:
        kept = [w for w in words if not w.startswith(("-target=", "-report")) and not w.endswith(".xscope")]
        if "-c" not in kept:
            continue
        # The hook that takes hardware threads by lib_xcore, which the real compiler's macros would choose.
        kept = ["-DNN_PARALLEL=2", *("-O1" if word == "-O3" else word for word in kept)]
        made = Path(where) / kept[kept.index("-o") + 1]
        made.parent.mkdir(parents=True, exist_ok=True)
        checked = ["-Wall", "-Werror"] if any(word.startswith(str(project)) for word in kept) else []
        subprocess.run([compiler, *checked, *kept, *includes], cwd=where, check=True)
        objects.append(str(made))
    stub = [str(HEADERS / "stub.c"), *includes, "-pthread"]
    subprocess.run([compiler, *objects, *stub, "-o", str(program)], check=True)


def environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]])}
