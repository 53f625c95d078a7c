"""Kills builds of a model and checks that the next build is right.

A round begins with the finished build of model A. Then model B is built, and its build is killed (-9, with
its children): when half of the n-th target is written, or when SCons has written its record aside. Then A is
built again: every file must be equal to that of a build of A in an empty folder. Beside the test firmware the
project has a program of its user's: an object that includes the network's header, and a command after the
linker.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paths import ROOT, TESTS

from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder

# SCons with a hook: it kills its process group at its n-th target, or when it replaces its record.
KILLED = """
import os, signal
import SCons.Node, SCons.Script, SCons.dblite

moment, number = os.environ["MOMENT"], int(os.environ["NUMBER"])
count = 0

def die(*given):
    os.killpg(0, signal.SIGKILL)

def build(node, **given):
    global count
    count += 1
    made(node, **given)
    if moment == "half" and count == number:
        for target in node.executor.get_all_targets():
            os.truncate(target.path, os.path.getsize(target.path) // 2)
        die()

made, SCons.Node.Node.build = SCons.Node.Node.build, build
if moment == "record is whole":
    SCons.dblite._Dblite._os_replace = staticmethod(die)
SCons.Script.main()
"""
# Records of SCons and of the tool, and clang's temporary objects.
IGNORED = re.compile(r"\.sconsign\.(dblite|tmp)|\.buildtool\.lock|.*-[0-9a-f]{8}\.o\.tmp")


def model(seed: int, filters: int = 6, classes: int = 4) -> bytes:
    """Returns a network of two layers. `seed` determines its weights."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 6, 6, 2)), filters, kernel=(3, 3))
    return write_model(net.graph([net.dense(net.flatten(x), classes)]))


# Other weights, another topology with the same interface, another interface.
OTHERS = {"weights": model(2), "topology": model(3, filters=9), "interface": model(4, classes=7)}


@dataclass(frozen=True)
class Kill:
    """When the build of model `other` is killed: `number` is the target that is half written."""

    other: str
    moment: str
    number: int
    jobs: int = 1

    def __str__(self) -> str:
        return f"{self.other}, {self.moment} {self.number}, -j{self.jobs}"


class Project:
    """A folder with the build. `compilers`: variables that name the compilers to use."""

    def __init__(self, folder: Path, compilers: Mapping[str, str]) -> None:
        self.folder, self.compilers = folder / "project", compilers
        self.kept = folder / "kept"
        self.folder.mkdir()
        shutil.copytree(
            ROOT / "site_scons", self.folder / "site_scons", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name in ("SConstruct", "main.c"):
            shutil.copy(TESTS / "support/killed" / name, self.folder)
        self.put(model(1))
        error = self.build()
        assert not error, error
        self.expected = self.files()
        shutil.copytree(self.folder, self.kept)  # times are kept too

    def put(self, data: bytes) -> None:
        (self.folder / "net.tflite").write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """Returns all files, without the records of SCons and the tool."""
        paths = (path for path in self.folder.rglob("*") if path.is_file() and "site_scons" not in path.parts)
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in paths
            if not IGNORED.fullmatch(path.name)
        }

    def build(self, *words: str) -> str:
        """Runs a build that is not killed. Returns its first error, "" if there is none."""
        process = self._start([sys.executable, "-m", "SCons", "-Q", *words])
        output, _ = process.communicate(timeout=600)
        errors = [line for line in output.splitlines() if "error" in line.lower()]
        return "" if process.returncode == 0 else f"the build failed: {[*errors, output][0]}"

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder)

    def is_current(self) -> bool:
        """Whether `scons -q`, which builds nothing, finds all up to date."""
        return not self.build("-q")

    def killed(self, kill: Kill) -> bool:
        """Builds model B on top of A's build. Returns whether the build was killed."""
        self.restore()
        self.put(OTHERS[kill.other])
        started = self._start([sys.executable, "-c", KILLED, "-Q", f"-j{kill.jobs}"], kill)
        started.communicate(timeout=600)
        return started.returncode == -signal.SIGKILL

    def differences(self) -> list[str]:
        """Builds A again. Returns its error, or the files that differ from a build in an empty folder."""
        self.put(model(1))
        if error := self.build():
            return [error]
        got = self.files()
        wrong = [name for name in sorted({*got, *self.expected}) if got.get(name) != self.expected.get(name)]
        if subprocess.run([self.folder / "app.elf"], check=False).returncode:
            wrong.append("app.elf does not run")
        return wrong

    def _start(self, command: list[str], kill: Kill | None = None) -> subprocess.Popen[str]:
        variables = {"MOMENT": kill.moment, "NUMBER": str(kill.number)} if kill else {}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(self.compilers) | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
