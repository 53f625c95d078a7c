"""What a shared cache saves: a fresh cache folder with a filled server behind it, and without one.

    python -m benchmarks.shared_cache [MODEL...] [--board B] [--image MODE] [--delay MS]... [--runs N]

The server is Python's own on the loopback, which waits MS milliseconds before each answer, as a network of
that latency would. Each network is planned, its front is searched, it is analysed, and its firmware is built
by `buildtool build` and by `scons`. A key is set, so that every namespace that is sent takes part. The
times are seconds of wall clock and of CPU, each the median of the runs. `asked` is the number of requests to
the server, `bytes` what it sent.
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
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODELS = ("mobilenetv2:size=160", "squeezenet", "mcunet_320k_imagenet.tflite")
COMMANDS = ("plan", "front", "analyze", "build", "scons")
DELAYS = (0, 20, 50)  # ms: this machine or its network, a company's network, another continent
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "models"


class Server(ThreadingHTTPServer):
    """Entries in memory. Each answer comes `delay` seconds late."""

    daemon_threads = True
    delay = 0.0
    asked = sent = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.entries: dict[str, bytes] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        """Sends an entry."""
        data = self.server.entries.get(self.path)
        self.server.asked += 1
        self.server.sent += len(data or b"")
        self._answer(404 if data is None else 200, data or b"")

    def do_PUT(self) -> None:
        """Stores an entry."""
        self.server.entries[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
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
    """One network, the server, and folders that are new for each command."""

    def __init__(self, folder: Path, name: str, board: str, image: str) -> None:
        self.folder, self.board, self.image = folder, board, image
        self.model = folder / "model.tflite"
        self.model.write_bytes(_content(name))
        self.server = Server()

    def seconds(self, what: str, url: str = "", mode: str = "read") -> tuple[float, float]:
        """Returns the wall and CPU seconds of a command with an empty cache folder."""
        environment = os.environ | {
            "BUILDTOOL_CACHE_DIR": str(self.folder / "cache"),
            "BUILDTOOL_DAEMON": "off",
            "BUILDTOOL_CACHE": "on",
            "BUILDTOOL_CACHE_URL": url,
            "BUILDTOOL_CACHE_MODE": mode,
            "BUILDTOOL_CACHE_KEY": "a key for this benchmark",
            "PYTHONPATH": str(ROOT),
        }
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        folder = self.folder / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        words = ["buildtool", what, str(self.model), "--board", self.board, "--image", self.image]
        words += ["--out", str(folder / "out")] if what == "build" else []
        if what == "scons":
            shutil.copy(ROOT / "SConstruct", folder)
            shutil.copytree(ROOT / "site_scons", folder / "site_scons")
            words = ["scons", "-Q", f"board={self.board}", f"model={self.model}", f"image={self.image}"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode or "warning: the shared cache" in done.stderr:
            raise SystemExit(done.stdout + done.stderr)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def row(self, what: str, delays: list[int], runs: int) -> list[str]:
        """Returns the row of a command: seconds without a server, and with one for each delay."""
        self.server.delay = 0.0
        self.seconds(what, self.server.url, "write")
        self.server.asked = self.server.sent = 0
        self.seconds(what, self.server.url)
        asked, sent = self.server.asked, self.server.sent
        times: dict[int | None, list[tuple[float, float]]] = {delay: [] for delay in (None, *delays)}
        for _ in range(runs):
            for delay, found in times.items():
                self.server.delay = (delay or 0) / 1000
                found.append(self.seconds(what, "" if delay is None else self.server.url))
        pairs = [map(statistics.median, zip(*found, strict=True)) for found in times.values()]
        return [*("{:.1f} / {:.1f}".format(*pair) for pair in pairs), f"{asked}", f"{sent:,}"]


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--board", default="cortex-m4")
    parser.add_argument("--image", default="stream")
    parser.add_argument("--delay", type=int, action="append", dest="delays", metavar="MS")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    delays = args.delays or list(DELAYS)
    print(f"| network | command | no server | {' | '.join(f'{ms} ms' for ms in delays)} | asked | bytes |")
    print("| --- | --- |" + " ---: |" * (len(delays) + 3))
    for name in args.models:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), name, args.board, args.image)
            for what in COMMANDS:
                cells = bench.row(what, delays, args.runs)
                print(f"| {name} | `{what}` | " + " | ".join(cells) + " |", flush=True)
    return 0


def _content(name: str) -> bytes:
    path = SHARED / name
    if path.is_file():
        return path.read_bytes()
    from buildtool import zoo

    return zoo.build(name)


if __name__ == "__main__":
    sys.exit(main())
