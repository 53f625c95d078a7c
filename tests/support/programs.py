"""Runs programs, mostly SCons, in a test's own folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from paths import ROOT

from buildtool.fronts.examples import write_example

SCONS = (sys.executable, "-P", "-m", "SCons", "-Q")
IGNORED = shutil.ignore_patterns(
    "__pycache__", "build", "networks", ".sconsign.dblite", "compile_commands.json"
)


def ran(
    folder: Path, *words: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program without input. `stdout` of the result has both streams.

    `environment`: variables in addition to the test's.
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
    """Runs a program that must end with `status` (not with 0 if it `fails`). Returns its output."""
    result = ran(folder, *words, environment=environment)
    assert result.returncode != 0 if fails else result.returncode == status, result.stdout
    return result.stdout


def scons(folder: Path, *words: str, status: int = 0, home: Path = ROOT, **variables: str) -> str:
    """Runs SCons with the tools and the buildtool of the checkout `home`. Returns its output."""
    path = os.pathsep.join(map(str, (home, home / "plugins")))
    return said(folder, *SCONS, *words, status=status, environment={"PYTHONPATH": path, **variables})


def with_tools(folder: Path) -> Path:
    """Copies the checkout's SConstruct and its tools to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "SConstruct", folder)
    shutil.copytree(ROOT / "site_scons", folder / "site_scons", ignore=IGNORED)
    return folder


def copied(example: str, folder: Path) -> Path:
    write_example(example, folder)
    return folder
