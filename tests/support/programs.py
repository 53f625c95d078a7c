"""Programs that a test runs in a folder of its own, SCons above all: what they print, and how they end."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from paths import ROOT

SCONS = (sys.executable, "-P", "-m", "SCons", "-Q")
IGNORED = shutil.ignore_patterns(
    "__pycache__", "build", "networks", ".sconsign.dblite", "compile_commands.json"
)


def ran(
    folder: Path, *words: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that has ended, and what it printed on both streams as `stdout`; nobody types anything.

    `environment`: variables beside those of the test.
    """
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=os.environ | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
        timeout=1800,
        check=False,
    )


def said(
    folder: Path,
    *words: object,
    status: int = 0,
    fails: bool = False,
    environment: Mapping[str, str] | None = None,
) -> str:
    """What a program prints that ends with `status`, or with any other than 0 where it `fails`."""
    done = ran(folder, *words, environment=environment)
    assert done.returncode != 0 if fails else done.returncode == status, done.stdout
    return done.stdout


def scons(folder: Path, *words: str, status: int = 0, home: Path = ROOT, **variables: str) -> str:
    """What SCons says with the tools and the buildtool of a checkout, `home`."""
    path = os.pathsep.join(map(str, (home, home / "plugins")))
    return said(folder, *SCONS, *words, status=status, environment={"PYTHONPATH": path, **variables})


def with_tools(folder: Path) -> Path:
    """The checkout's SConstruct and its tools, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "SConstruct", folder)
    shutil.copytree(ROOT / "site_scons", folder / "site_scons", ignore=IGNORED)
    return folder


def copied(example: str, folder: Path) -> Path:
    """An example alone, far from this repository."""
    shutil.copytree(ROOT / "examples" / example, folder, ignore=IGNORED)
    return folder
