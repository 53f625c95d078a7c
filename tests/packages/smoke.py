"""Tries an installed buildtool-mcu, step by step, and prints a line for each: python smoke.py [--all]

It needs only the Python that the package is installed in. A step whose tools are missing is left out; with
--all that counts as a failure. The exit status is 1 where a step failed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

NETWORK = "ds_cnn"
SECONDS = 600  # ends a command that hangs


class LeftOutError(Exception):
    """A step cannot run here; `args[0]` says what is missing."""


class Trial:
    """The installed command in an empty folder, with a cache and a home of its own and no daemon."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scripts = Path(sysconfig.get_path("scripts"))
        self.command = shutil.which("buildtool", path=str(scripts)) or f"no buildtool in {scripts}"
        own = {"BUILDTOOL_DAEMON": "off", "XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1"}
        path = os.pathsep.join([str(scripts), os.environ.get("PATH", "")])
        self.environment = {**os.environ, **own, "PATH": path}
        self.environment.pop("PYTHONPATH", None)

    def run(self, *words: object) -> str:
        """Returns what a program prints. Raises RuntimeError if it fails."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        if done.returncode or "Traceback" in done.stderr:
            raise RuntimeError(
                f"{words}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
            )
        return done.stdout

    def buildtool(self, *words: object) -> str:
        """Returns what the command prints."""
        return self.run(self.command, *words)

    # ---- the steps, in order; each returns what its line says ---------------------------------------------

    def version(self) -> str:
        """--version, which says where the package is from."""
        said = self.buildtool("--version").strip()
        expect(re.fullmatch(r"buildtool \S+, from buildtool-mcu in .+", said), said)
        return said

    def plan(self) -> str:
        """A plan for a microcontroller, within a limit."""
        answer = json.loads(self.buildtool("plan", NETWORK, "--board", "cortex-m4", "--ram", "12K", "--json"))
        expect(0 < answer["arena_bytes"] <= 12 << 10, answer)
        return f"arena {answer['arena_bytes']:,} bytes"

    def analyze(self) -> str:
        """Which boards a network suits."""
        rows = json.loads(self.buildtool("analyze", NETWORK, "--json"))["boards"]
        expect(len(rows) > 5, rows)
        return f"{len(rows)} boards"

    def report(self) -> str:
        """The page in HTML."""
        self.buildtool("report", NETWORK, "--board", "cortex-m4", "-o", "report.html")
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        expect(page.lower().startswith("<!doctype html>") and "</html>" in page, page[:200])
        return f"{len(page):,} characters"

    def emit(self) -> str:
        """The C of a network."""
        self.buildtool("emit", NETWORK, "--board", "cortex-m4", "-o", "emitted")
        source = self.folder / "emitted" / f"{NETWORK}.c"
        expect(source.is_file(), sorted(self.folder.rglob("*")))
        return f"{source.stat().st_size:,} bytes of C"

    def build(self) -> str:
        """A program for this machine, and that its output is exact."""
        need_compiler()
        self.buildtool("build", NETWORK, "--board", "host", "-o", "built")
        said = self.buildtool("validate", NETWORK, "--board", "host")
        expect("EQUAL to" in said, said)
        return said.strip().splitlines()[-1]

    def cmake(self) -> str:
        """The example of a CMake project, written, built and run."""
        need_compiler()
        if not shutil.which("cmake"):
            raise LeftOutError("there is no cmake in PATH")
        makers = {"ninja": "Ninja", "make": "Unix Makefiles"}
        generator = next((makers[name] for name in makers if shutil.which(name)), None)
        if generator is None or not (shutil.which("c++") or shutil.which("clang++") or shutil.which("g++")):
            raise LeftOutError("there is no ninja or make, or no C++ compiler, in PATH")
        self.buildtool("example", "cmake", "project")
        package = f"-Dbuildtool_DIR={self.buildtool('--cmake-dir').strip()}"
        self.run("cmake", "-S", "project", "-B", "project/build", "-G", generator, package)
        self.run("cmake", "--build", "project/build", "--target", "app")
        said = self.run(self.folder / "project/build" / ("app.exe" if os.name == "nt" else "app"))
        expect(re.search(r"keyword \d+", said), said)
        return said.strip().splitlines()[-1]


def expect(holds: object, said: object) -> None:
    """Raises RuntimeError unless `holds`."""
    if not holds:
        raise RuntimeError(f"unexpected: {said}")


def need_compiler() -> None:
    """Raises LeftOutError where nothing is built for the board `host`, or no compiler is in PATH."""
    if sys.platform in ("darwin", "win32"):
        raise LeftOutError("programs for this machine are built only where they are ELF files")
    if not (shutil.which("clang") or shutil.which("gcc")):
        raise LeftOutError("there is no clang or gcc in PATH")


def attempt(name: str, step: Callable[[], str]) -> str:
    """Runs a step and prints its line. Returns "ok", "left out" or "FAILED"."""
    try:
        verdict, said = "ok", step()
    except LeftOutError as error:
        verdict, said = "left out", error.args[0]
    except Exception as error:
        verdict, said = "FAILED", f"{type(error).__name__}: {error}"
    print(f"{verdict:8}  {name:8}  {said}", flush=True)
    return verdict


def main(words: list[str]) -> int:
    """Runs all steps; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="buildtool-smoke-", ignore_cleanup_errors=True) as name:
        trial = Trial(Path(name))
        steps = (trial.version, trial.plan, trial.analyze, trial.report, trial.emit, trial.build, trial.cmake)
        verdicts = [attempt(step.__name__, step) for step in steps]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in ("ok", "left out", "FAILED"))
    system = f"{platform.system()} {platform.machine()}"
    print(f"buildtool-mcu on Python {platform.python_version()}, {system}: {counts}")
    return int("FAILED" in verdicts or ("--all" in words and "left out" in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
