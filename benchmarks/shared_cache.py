"""What a shared cache saves: a fresh clone with a filled server behind it, and without one.

    python -m benchmarks.shared_cache [NETWORK...] [--boards B,B] [--minutes M] [--no-key]

Ten networks on three boards, some with a tight limit on RAM. Each is planned, its front is searched, and its
test firmware is built by SCons and by CMake with Ninja, two jobs at a time. Every command starts in an empty
project:

    no server     nothing is cached, not even digests of compilers
    filled        nothing is cached here; the server has what such a build sends
    20 ms         the same, and the server answers 20 ms later
    daemon        a daemon has answered the same before, and its cache folder exists

The server is Python's own on the loopback. A key is set, so that every namespace that can be sent takes part;
with --no-key only plans are sent. Each network has the conditions `20 ms` and `daemon` on one of the boards.
The conditions of a command follow each other. Whole rounds are made while time is left (at least one), and
the medians are taken. Seconds are those of the clock, and those of the CPU for all processes, daemon
included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.build_systems import cpu_seconds
from buildtool import zoo
from buildtool.base.store.disk import Disk
from buildtool.base.store.remote.cache import Remote
from buildtool.base.store.remote.settings import Settings
from buildtool.fronts.cmake.quoting import cmake_folder

# Each with its limit on RAM and the mode of its image; "": no limit but the board's, and the default.
NETWORKS = {
    "ds_cnn": ("", ""),
    "autoencoder": ("", ""),
    "resnet8": ("32K", "stream"),
    "mobilenetv1_025_96": ("24K", "stream"),
    "mcunet_vww5": ("14K", "stream"),
    "mbv2_w035_144": ("20K", "stream"),
    "mobilenetv3_small:size=96": ("", "stream"),
    "squeezenet:size=128": ("64K", "stream"),
    "mcunet_320k": ("60K", "stream"),
    "mobilenetv2:size=128,alpha=0.5": ("40K", "stream"),
}
BOARDS = "cortex-m4,cortex-m55,qemu-virt-rv32"
COMMANDS = ("plan", "front", "scons", "cmake")
CONDITIONS = ("no server", "filled", "20 ms", "daemon")
ROOT = Path(__file__).resolve().parents[1]
PYTHON = [sys.executable, "-P", "-m", "buildtool"]
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(firmware C)
find_package(buildtool CONFIG REQUIRED)
buildtool_add_network(net MODEL model.tflite LIMITS)
buildtool_add_firmware(firmware NETWORK net)
"""
Times = tuple[float, float]  # seconds of the clock, of the CPU


class Server(ThreadingHTTPServer):
    """A server with entries in memory. Each answer is `delay` seconds late. Counts requests and bytes."""

    daemon_threads = True
    delay = 0.0
    sent = stored = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.entries: dict[str, bytes] = {}
        self.gets, self.puts = Counter[str](), Counter[str]()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        """Sends an entry."""
        data = self.server.entries.get(self.path)
        self.server.gets[self.path] += 1
        self.server.sent += len(data or b"")
        self._answer(404 if data is None else 200, data or b"")

    def do_PUT(self) -> None:
        """Stores an entry."""
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.entries[self.path] = data
        self.server.puts[self.path] += 1
        self.server.stored += len(data)
        self._answer(201, b"")

    def _answer(self, status: int, data: bytes) -> None:
        time.sleep(self.server.delay)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, form: str, *about: object) -> None:
        """Logs nothing."""


class Bench:
    """One network on one board: folders for its commands, a server and a daemon.

    `requests` has for each command how many it sent to the filled server, and the bytes that it got.
    """

    def __init__(self, folder: Path, model: Path, network: str, board: str, key: str) -> None:
        self.folder, self.model, self.board, self.key = folder, model, board, key
        self.ram, self.image = NETWORKS.get(network, ("", ""))
        self.server = Server()
        self.requests: dict[str, tuple[int, int]] = {}

    def times(self, what: str, condition: str) -> Times:
        """Returns the seconds of a command. If it had no server, its cache is then sent to the server."""
        self.server.delay = 0.02 if condition == "20 ms" else 0.0
        home = self.folder / ("warm" if condition == "daemon" else "cache")
        if condition == "daemon":
            self._run(what, condition, home)  # the daemon answers for the first time
        else:
            shutil.rmtree(home, ignore_errors=True)
        before = self.server.gets.total(), self.server.sent
        found = self._run(what, condition, home)
        if condition == "no server":
            self._send(home / "buildtool/planner")
        elif condition == "filled":
            self.requests[what] = self.server.gets.total() - before[0], self.server.sent - before[1]
        return found

    def stop_daemon(self) -> None:
        """Stops the daemon, and removes its cache."""
        environment = self._environment("daemon", self.folder / "warm")
        subprocess.run([*PYTHON, "daemon", "stop"], env=environment, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, folder: Path) -> None:
        """Sends the entries of a cache folder to the server, as a build with the mode `write` does."""
        remote, disk = Remote(Settings(self.server.url, "write", self.key), None), Disk(folder)
        for level, key, _ in disk.entries():
            remote.queue(level, key, disk.read(level, key) or b"")
        remote.push()
        remote.close()

    def _environment(self, condition: str, home: Path) -> dict[str, str]:
        """Returns the environment of a command, without the settings of the user of this benchmark."""
        without = ("BUILDTOOL_", "PYTHONDONTWRITEBYTECODE", "CI", "MAKEFLAGS")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(without)}
        remote = {"BUILDTOOL_CACHE_URL": self.server.url, "BUILDTOOL_CACHE_KEY": self.key}
        return {
            **kept,
            **(remote if condition in ("filled", "20 ms") else {}),
            "BUILDTOOL_DAEMON": "auto" if condition == "daemon" else "off",
            "XDG_CACHE_HOME": str(home),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": str(self.folder.parent / "bytecode"),
        }

    def _run(self, what: str, condition: str, home: Path) -> Times:
        """Runs a command in a new project."""
        project = self.folder / "project"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir(parents=True)
        commands, environment = getattr(self, f"_{what}")(project), self._environment(condition, home)
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "warm")  # `cpu_seconds` knows the daemon by it
        before, began = cpu_seconds(), time.perf_counter()
        for command in commands:
            done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
            if done.returncode or "warning: the shared cache" in done.stderr:
                raise SystemExit(f"{command} failed:\n{done.stdout}{done.stderr}")
        return time.perf_counter() - began, cpu_seconds() - before

    def _plan(self, _project: Path) -> list[list[str]]:
        limits = [f"--{name}={value}" for name, value in self._limits()]
        return [[*PYTHON, "plan", str(self.model), f"--board={self.board}", *limits]]

    def _front(self, _project: Path) -> list[list[str]]:
        limits = [f"--{name}={value}" for name, value in self._limits() if name != "ram"]
        return [[*PYTHON, "front", str(self.model), f"--board={self.board}", *limits]]

    def _scons(self, project: Path) -> list[list[str]]:
        shutil.copy(ROOT / "SConstruct", project)
        shutil.copytree(ROOT / "site_scons", project / "site_scons")
        limits = [f"{name}={value}" for name, value in self._limits()]
        return [["scons", "-Q", "-j2", f"board={self.board}", f"model={self.model}", *limits]]

    def _cmake(self, project: Path) -> list[list[str]]:
        shutil.copy(self.model, project / "model.tflite")
        limits = " ".join(f"{name.upper()} {value}" for name, value in self._limits())
        (project / "CMakeLists.txt").write_text(LISTS.replace("LIMITS", limits))
        package = cmake_folder()
        toolchain = f"-DCMAKE_TOOLCHAIN_FILE={package}/boards/{self.board}.cmake"
        return [
            ["cmake", "-B", "build", "-G", "Ninja", f"-Dbuildtool_DIR={package}", toolchain],
            ["cmake", "--build", "build", "-j2"],
        ]

    def _limits(self) -> Iterator[tuple[str, str]]:
        """Yields the names and values of the network's options."""
        yield from ((name, value) for name, value in (("ram", self.ram), ("image", self.image)) if value)


Cell = tuple[str, str, str, str]  # network, board, command, condition


def measure(benches: dict[tuple[str, str], Bench], minutes: float) -> tuple[dict[Cell, list[Times]], int]:
    """Returns the times of whole rounds, as many as the time allows, and the number of rounds."""
    found: dict[Cell, list[Times]] = defaultdict(list)
    networks, boards = (list(dict.fromkeys(names)) for names in zip(*benches, strict=True))
    began, rounds, last = time.monotonic(), 0, 0.0
    while not rounds or time.monotonic() - began + last < 60 * minutes:
        start = time.monotonic()
        for (network, board), bench in benches.items():
            has_all = boards[networks.index(network) % len(boards)] == board
            for what in COMMANDS:
                for condition in CONDITIONS if has_all else CONDITIONS[:2]:
                    found[network, board, what, condition].append(bench.times(what, condition))
            bench.stop_daemon()
            if sys.stderr.isatty():
                print(f"{network} on {board}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        rounds, last = rounds + 1, time.monotonic() - start
    return found, rounds


class Table:
    """The medians of all rounds; it computes means of them."""

    def __init__(self, found: dict[Cell, list[Times]]) -> None:
        self.medians: dict[Cell, Times] = {}
        for cell, times in found.items():
            wall, cpu = (statistics.median(seconds) for seconds in zip(*times, strict=True))
            self.medians[cell] = wall, cpu

    def mean(self, what: str, condition: str, pairs: Iterable[tuple[str, str]]) -> Times:
        """Returns the mean seconds of a command over networks and boards."""
        cells = [self.medians[(*pair, what, condition)] for pair in pairs]
        wall, cpu = (statistics.mean(seconds) for seconds in zip(*cells, strict=True))
        return wall, cpu

    def pairs(self, condition: str = "filled", network: str = "") -> list[tuple[str, str]]:
        """Returns the networks and boards that have a condition."""
        names = {cell[:2]: None for cell in self.medians if cell[3] == condition}
        return [pair for pair in names if network in ("", pair[0])]


def commands_table(table: Table, benches: dict[tuple[str, str], Bench]) -> Iterator[str]:
    """Yields the lines of the table of commands."""
    some = table.pairs("daemon")
    for pairs, conditions in ((table.pairs(), CONDITIONS[:2]), (some, CONDITIONS)):
        count = f"{len(pairs)} pairs of network and board"
        yield f"| {count} | {' | '.join(conditions)} | CPU, filled / no server | requests | bytes |"
        yield "| --- |" + " ---: |" * (len(conditions) + 3)
        for what in COMMANDS:
            means = [table.mean(what, condition, pairs) for condition in conditions]
            cells = [f"{wall:.2f} / {cpu:.2f}" for wall, cpu in means]
            asked, sent = (
                statistics.mean(numbers)
                for numbers in zip(*(benches[pair].requests[what] for pair in pairs), strict=True)
            )
            ratio = f"{means[1][1] / means[0][1]:.2f}"
            yield f"| `{what}` | {' | '.join([*cells, ratio, f'{asked:.0f}', f'{sent:,.0f}'])} |"
        yield ""


def networks_table(table: Table) -> Iterator[str]:
    """Yields the lines of the table of networks: CPU seconds without a server, and with a filled one."""
    yield f"| network | limits | {' | '.join(COMMANDS)} |"
    yield "| --- | --- |" + " ---: |" * len(COMMANDS)
    for network in dict.fromkeys(network for network, _ in table.pairs()):
        ram, image = NETWORKS.get(network, ("", ""))
        limits = " ".join(filter(None, [ram and f"ram={ram}", image and f"image={image}"]))
        pairs = table.pairs(network=network)
        cells = []
        for what in COMMANDS:
            without, filled = (table.mean(what, condition, pairs)[1] for condition in CONDITIONS[:2])
            cells.append(f"{without:.1f} to {filled:.1f}")
        yield f"| `{network}` | {limits} | {' | '.join(cells)} |"


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--boards", default=BOARDS)
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--no-key", action="store_true")
    args = parser.parse_args()
    key = "" if args.no_key else "a key for this benchmark"
    with tempfile.TemporaryDirectory() as name:
        benches, folder = dict[tuple[str, str], Bench](), Path(name)
        for number, network in enumerate(args.networks):
            model = folder / f"net{number}.tflite"
            model.write_bytes(zoo.build(network))
            for board in args.boards.split(","):
                benches[network, board] = Bench(folder / f"{number}{board}", model, network, board, key)
        first = next(iter(benches.values()))
        for what in COMMANDS:  # bytecode is written
            first.times(what, "no server")
        found, rounds = measure(benches, args.minutes)
    table = Table(found)
    print("\n".join(commands_table(table, benches)))
    print("\n".join(networks_table(table)))
    print(f"\n{rounds} round(s); means of the networks' and boards' medians")
    return 0


if __name__ == "__main__":
    sys.exit(main())
