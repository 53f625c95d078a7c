"""Random edits of a project, its compiler and buildtool's code, built on top of the last build and anew.

SCons builds, and `buildtool build`. What is built on top has a daemon, a cache and all that earlier builds
have left; the other one has an empty folder and no cache. All files that they make have to be equal. Half of
the edits leave a file's time as it was; some go through a memory map, or switch a link to an older file.
"""

from __future__ import annotations

import mmap
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from buildtool_plugins.tools.find import find_clang

from benchmarks.stale.projects import ROOT, Project, edited

MODEL = (
    "retrained",
    "weights",
    "names of tensors",
    "numbers of tensors",
    "a layer",
    "quantisation of a tensor",
)
SCONSTRUCT = """
import os
tools = ["buildtool_network", "compile_commands"]
env = Environment(tools=tools, ENV=dict(os.environ))
env.UseBoard("mine.toml", verbose=False)
network = env.NeuralNetwork("net.tflite", **{options})
env.NetworkFirmware(network)
env.CompileCommands("compile_commands.json")
"""


class Builds:
    """A copy of the checkout and a project, both in one folder.

    Its compiler is a script that never changes. The compiler that the script calls changes, and so do its
    environment variables.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.home, self.project = folder / "home", folder / "project"
        ignore = shutil.ignore_patterns("__pycache__")
        for name in ("buildtool", "plugins", "kernels", "site_scons"):
            shutil.copytree(ROOT / name, self.home / name, ignore=ignore)
        self.project.mkdir()
        self.state = Project(board="host")
        self.number = 0
        self.variables = {"BUILDTOOL_CLANG": str(folder / "bin/clang")}
        for path, program in (
            (folder / "bin/clang", folder / "behind"),
            (folder / "behind", find_clang().path),
        ):
            path.parent.mkdir(exist_ok=True)
            path.write_text(_script(str(program)))
            path.chmod(0o755)
        self.write()

    def write(self) -> None:
        """Writes the project's files for the current state; files with equal content are not touched."""
        self.state.write(self.folder)
        options = {name: value for name, value in self.state.options if name == "ram"}
        (self.folder / "SConstruct").write_text(SCONSTRUCT.format(options=options))
        for name in ("net.tflite", "mine.toml", "base.toml", "SConstruct"):
            self.put(self.project / name, (self.folder / name).read_bytes())

    def put(self, path: Path, data: bytes) -> None:
        """Replaces a file's content, in place or by a rename; the file's time may stay the same."""
        if path.exists() and path.read_bytes() == data:
            return
        before = path.stat() if path.exists() else None
        way = self.draw.choice(
            ("in place", "renamed", "mapped", "linked" if path.suffix == ".tflite" else "renamed")
        )
        if way == "mapped" and before and before.st_size == len(data):
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
                mapped[:] = data
        elif way in ("renamed", "mapped") and before:
            part = path.with_suffix(".part")
            part.write_bytes(data)
            part.chmod(before.st_mode)
            part.replace(path)
        elif way == "linked":
            other = path.with_name(f"of {self.number}{path.suffix}")
            other.write_bytes(data)
            os.utime(other, (1e9, 1e9))
            path.unlink(missing_ok=True)
            path.symlink_to(other.name)
            return
        else:
            path.write_bytes(data)
        if before and self.draw.randrange(2):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def edit(self) -> str:
        """Makes one random edit; returns what was edited."""
        self.number += 1
        if self.draw.randrange(5) == 0:
            return self.edit_compiler()
        if self.draw.randrange(5) < 2:
            what = self.draw.choice(sorted(_CODE))
            path, change = _CODE[what]
            self.run("buildtool", "daemon", "stop", cwd=self.folder)
            self.put(self.home / path, change((self.home / path).read_text(), self.number).encode())
            return what
        if self.draw.randrange(4) == 0:
            ram = self.draw.choice(("3K", "6K", "20K", "1M"))
            self.state = replace(self.state, options=(("ram", ram),), edit="ram")
        else:
            found = self.state
            while found == self.state or found.edit not in MODEL:
                found = edited(self.state, self.draw)
            self.state = found
        self.write()
        return self.state.edit

    def edit_compiler(self) -> str:
        """Changes the compiler behind the script, or its variables; returns what was changed."""
        what = self.draw.choice(("the compiler behind the script", "a variable", "no variable"))
        if what == "the compiler behind the script":
            flag = self.draw.choice(("-O1", "-O2", "-Os"))
            self.put(self.folder / "behind", _script(find_clang().path, flag).encode())
        elif what == "a variable":
            self.variables["CCC_OVERRIDE_OPTIONS"] = self.draw.choice(("# +-fno-inline", "# +-fwrapv"))
            self.variables["BUILDTOOL_COMPILER_ENV"] = self.draw.choice(("", "CCC_OVERRIDE_OPTIONS"))
        else:
            self.variables.pop("CCC_OVERRIDE_OPTIONS", None)
        return what

    def compare(self, found: Counter[str]) -> list[str]:
        """Builds in the existing folder and in an empty one; returns the files that differ."""
        warm = self.build(), self.files()
        kept = self.folder / "kept"
        self.project.rename(kept)
        self.project.mkdir()
        for name in ("net.tflite", "mine.toml", "base.toml", "SConstruct"):
            shutil.copy2(kept / name, self.project / name)
        cold = self.build(cold=True), self.files()
        shutil.rmtree(self.project)
        kept.rename(self.project)
        found["builds"] += 1
        if warm[0] and cold[0]:
            found["refused builds"] += 1
            print(f"refused: {warm[0]}", flush=True)
            return []
        names = sorted({*warm[1], *cold[1]})
        found["files"] += len(names)
        wrong = [name for name in names if warm[1].get(name) != cold[1].get(name)]
        return wrong + ([f"{warm[0]} / {cold[0]}"] if warm[0] != cold[0] else [])

    def files(self) -> dict[str, bytes]:
        """Returns the contents of all files that the build made."""
        found = [*(self.project / "build").rglob("*"), *(self.project / "made").rglob("*")]
        found.append(self.project / "compile_commands.json")
        return {str(path.relative_to(self.project)): path.read_bytes() for path in found if path.is_file()}

    def build(self, cold: bool = False) -> str:
        """Runs SCons, and then buildtool's command; returns the first error, or ""."""
        done = self.run("SCons", "-Q", "-j2", f"--site-dir={self.home}/site_scons", cold=cold)
        if done.returncode == 0:
            ram = [f"--ram={value}" for name, value in self.state.options if name == "ram"]
            words = ("build", "net.tflite", "--board", "mine.toml", *ram, "--out", "made")
            done = self.run("buildtool", *words, cold=cold)
        errors = [line for line in done.stdout.splitlines() if "rror" in line]
        return "" if done.returncode == 0 else (errors or [done.stdout])[0]

    def run(
        self, module: str, *words: str, cold: bool = False, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Python module as a command, with the copied checkout."""
        kept = self.folder / ("nothing" if cold else "cache")
        if cold:
            shutil.rmtree(kept, ignore_errors=True)
        variables = {
            "PYTHONPATH": os.pathsep.join([str(self.home), str(self.home / "plugins")]),
            "XDG_CACHE_HOME": str(kept),
            "BUILDTOOL_STATE_DIR": str(self.folder / "state"),
            "BUILDTOOL_CACHE": "off" if cold else "on",
            "BUILDTOOL_DAEMON": "off" if cold else "auto",
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", module, *words],
            cwd=cwd or self.project,
            env=os.environ | variables | self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def _script(program: str, flag: str = "-O3") -> str:
    """Returns a script that runs a program with one more flag. All its versions have the same length."""
    return f'#!/bin/sh\nexec {program} "$@" {flag}\n'


def _numbered(text: str, number: int) -> str:
    """Returns C source with this number as a constant at its end.

    The length of the text is the same for all numbers.
    """
    text = re.sub(r"\nconst int edited_\d+ = \d+;\n$", "", text)
    return f"{text}\nconst int edited_{len(text)} = {number % 900 + 100};\n"


def _dearer(text: str, number: int) -> str:
    """Returns a catalogue in which some kernel calls cost more."""
    return re.sub(
        r'^cost = "(\d+ \+ )?', f'cost = "{number % 900 + 100} + ', text, count=3, flags=re.MULTILINE
    )


def _remarked(text: str, number: int) -> str:
    return re.sub(r"\n# \d+\n$", "", text) + f"\n# {number % 900 + 100}\n"


def _optimised(text: str, number: int) -> str:
    return re.sub(r"cflags = \[.*\]", f'cflags = ["-DEDITED={number % 900 + 100}"]', text)


_CODE: dict[str, tuple[str, Callable[[str, int], str]]] = {
    "a kernel": ("kernels/reference/nn_conv2d_s8.c", _numbered),
    "another kernel": ("kernels/reference/nn_add_s8.c", _numbered),
    "the harness": ("plugins/buildtool_plugins/harness/harness.c", _numbered),
    "a catalogue": ("kernels/reference/catalogue.toml", _dearer),
    "packing": ("kernels/reference/packing.py", _remarked),
    "the emitter": ("buildtool/emit/ctext.py", _remarked),
    "a plugin's board": ("plugins/buildtool_plugins/host/boards/host.toml", _optimised),
}


def compare(folder: Path, count: int, seed: int) -> Counter[str]:
    """Builds after each of `count` edits, and prints the differences.

    Returns how many builds and files were compared.
    """
    builds, found = Builds(folder, seed), Counter[str]()
    builds.compare(found)
    try:
        for _ in range(count):
            what = builds.edit()
            wrong = builds.compare(found)
            found["differ"] += bool(wrong)
            print(f"{what}: {', '.join(wrong) or 'equal'}", flush=True)
    finally:
        builds.run("buildtool", "daemon", "stop", cwd=folder)
    return found
