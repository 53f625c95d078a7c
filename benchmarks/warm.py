"""What the second answer costs: cold, from disk, from the daemon, prepared in the background.

    python benchmarks/warm.py [MODEL…] [--board B] [--runs N]

For each network, in folders of its own, the time that a plan takes:

    cold          in the command's own process, nothing kept
    disk          in a new process that finds what the last one has kept
    daemon        from a daemon that was asked for the same before
    prepared      from a daemon, for a model that was saved a moment ago (other weights)
    new limit     from a daemon, with a limit on RAM that was not asked for before

Times are those of the whole command `buildtool plan` (wall clock and CPU seconds of the client), inside the
daemon (from the request's arrival to its answer, as a client of the standard library sees it), and of the
whole `scons` (wall clock): into an empty folder, where kernels are compiled as well, and for `prepared` in a
folder that was built before the save. In each round every column runs once; the medians are shown.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from buildtool.client import daemon
from buildtool.client.files import Located

MODELS = ("mobilenetv2:size=160", "densenet", "mcunet_320k_imagenet.tflite")
LIMITS = (300, 250, 200, 160, 130, 100)  # K
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "models"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--image", default="stream")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print("| network | question | cold | disk | daemon | prepared | new limit |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in args.models:
        with tempfile.TemporaryDirectory() as folder:
            for row in Bench(Path(folder), name, args.board, args.image).rows(args.runs):
                print(f"| {name} | " + " | ".join(row) + " |", flush=True)
    return 0


class Bench:
    """One network, with its own cache and daemon."""

    def __init__(self, folder: Path, name: str, board: str, image: str) -> None:
        self.folder, self.board, self.image = folder, board, image
        self.model = folder / "model.tflite"
        self.model.write_bytes(_content(name))
        self.saves = 0
        self.project = folder / "project"
        self.project.mkdir()
        shutil.copy(ROOT / "SConstruct", self.project)
        shutil.copytree(ROOT / "site_scons", self.project / "site_scons")

    def rows(self, runs: int) -> list[list[str]]:
        """Returns the rows of medians: wall and CPU time of the command, time in the daemon, build time."""
        columns = ("cold", "disk", "daemon", "prepared", "limit")
        built: dict[str, list[float]] = {c: [] for c in columns}
        self.scons("off")  # compiles the kernels
        wall: dict[str, list[float]] = {c: [] for c in columns}
        cpu: dict[str, list[float]] = {c: [] for c in columns}
        inside: dict[str, list[float]] = {"daemon": [], "prepared": [], "limit": []}
        for run in range(runs):
            for column, found in self.round(LIMITS[run % len(LIMITS)] * 1024 + 16 * run).items():
                wall[column].append(found[0])
                built[column].append(found[3])
                cpu[column].append(found[1])
                if column in inside:
                    inside[column].append(found[2])
        return [
            ["`buildtool plan`, wall s", *(f"{statistics.median(wall[c]):.3f}" for c in columns)],
            ["`buildtool plan`, CPU s", *(f"{statistics.median(cpu[c]):.3f}" for c in columns)],
            ["in the daemon, ms", "", "", *(f"{1e3 * statistics.median(inside[c]):.1f}" for c in inside)],
            ["`scons`, wall s", *(f"{statistics.median(built[c]):.3f}" for c in columns)],
        ]

    def round(self, limit: int) -> dict[str, tuple[float, float, float, float]]:
        """Runs each column once.

        Returns for each one the plan's wall and CPU seconds, the seconds in the daemon, and the build's wall
        seconds.
        """
        found: dict[str, tuple[float, float, float, float]] = {}
        cache = self.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        found["cold"] = (*self.command("off"), 0.0, 0.0)
        found["disk"] = (*self.command("off"), 0.0, 0.0)
        shutil.rmtree(cache, ignore_errors=True)
        for column in ("cold", "disk"):
            found[column] = (*found[column][:3], self.scons("off"))
        try:
            self.command("require")
            self.rest()
            self.scons("require")
            found["limit"] = (*self.command("require", limit), self.ask(limit - 16), 0.0)
            found["limit"] = (*found["limit"][:3], self.scons("require", limit - 32))
            found["daemon"] = (*self.command("require"), self.ask(), self.scons("require"))
            self.save()
            self.rest()
            asked = self.ask()
            found["prepared"] = (*self.command("require"), asked, self.scons("require", fresh=False))
        finally:
            self.run(["daemon", "stop"])
        return found

    def command(self, mode: str, limit: int | None = None) -> tuple[float, float]:
        """Returns the wall and CPU seconds of a `buildtool plan`."""
        words = ["plan", str(self.model), "--board", self.board, "--image", self.image, "--daemon", mode]
        return self.run([*words, *(["--ram", str(limit)] if limit else [])])

    def scons(self, mode: str, limit: int | None = None, *, fresh: bool = True) -> float:
        """Returns the wall seconds of a build; with `fresh`, the build folder is empty."""
        if fresh:
            shutil.rmtree(self.project / "build", ignore_errors=True)
            (self.project / ".sconsign.dblite").unlink(missing_ok=True)
        words = ["scons", "-Q", f"board={self.board}", f"model={self.model}", f"image={self.image}"]
        words += [f"ram={limit}"] if limit else []
        environment = self.environment() | {"BUILDTOOL_DAEMON": mode, "PYTHONPATH": str(ROOT)}
        began = time.perf_counter()
        done = subprocess.run(words, cwd=self.project, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return time.perf_counter() - began

    def run(self, words: list[str]) -> tuple[float, float]:
        """Returns the wall and CPU seconds of a command."""
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(["buildtool", *words], env=self.environment(), stdout=subprocess.DEVNULL, check=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def environment(self) -> dict[str, str]:
        """Returns the caller's environment, with this benchmark's own folders."""
        return os.environ | {
            "BUILDTOOL_CACHE_DIR": str(self.folder / "cache"),
            "BUILDTOOL_STATE_DIR": str(self.folder / "state"),
            "BUILDTOOL_CACHE": "on",
            "BUILDTOOL_DAEMON_AHEAD": "100000",  # what is prepared waits for no budget
        }

    def ask(self, limit: int | None = None) -> float:
        """Returns the seconds from sending a request to its answer."""
        options = {"image": self.image, **({"ram": limit} if limit else {})}
        request = {"kind": "plan", "model": str(self.model), "board": self.board, "options": options}
        located = Located(request).request
        os.environ.update(self.environment())
        link = daemon.reach(start=False)
        try:
            began = time.perf_counter()
            link.request(located, "on", None)
            return time.perf_counter() - began
        finally:
            link.close()

    def rest(self) -> None:
        """Waits until all workers of the daemon are idle and nothing is left to prepare."""
        os.environ.update(self.environment())
        quiet = 0
        while quiet < 3:
            time.sleep(0.3)
            link = daemon.reach(start=False)
            try:
                status = link.control("status")
            finally:
                link.close()
            rests = all(worker["doing"] in ("idle", "starting") for worker in status["workers"])
            quiet = quiet + 1 if rests and not status["preparing"]["waiting"] else 0

    def save(self) -> None:
        """Saves the model with changed weights, as after training."""
        self.saves += 1
        data = bytearray(self.model.read_bytes())
        data[len(data) // 2 + self.saves % 64] ^= 1  # amid the weights
        self.model.write_bytes(bytes(data))


def _content(name: str) -> bytes:
    path = SHARED / name
    if path.is_file():
        return path.read_bytes()
    from buildtool import zoo

    return zoo.build(name)


if __name__ == "__main__":
    sys.exit(main())
