"""A server of a shared cache on the loopback, with all the ways in which a server may be bad.

with Loopback() as server:
    server.mood = "slow"
    ... server.url ... server.asked ...
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

# What a server may do in place of its duty, and what the warning says then ("": there is none).
MOODS = {
    "slow": "did not answer within",
    "dripping": "did not answer within",
    "truncated": "",
    "garbage": "sent no valid answer",
    "redirecting": "302: it redirects",
    "401": "401: credentials are missing or wrong",
    "500": "answered with status 500",
    "huge": "",
    "lying": "",
    "closing": "cannot be reached",
}


class Loopback(ThreadingHTTPServer):
    """`entries` has what was stored by path. `asked` has method and path of each request, and `sent` its
    Authorization.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.entries: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.sent: list[str] = []
        self.mood = ""
        self.ended = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/team"

    def __enter__(self) -> Loopback:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: clients hang up on bad servers."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def do_GET(self) -> None:
        """Answers as the mood says, else with the entry."""
        mood = self._begin()
        data = self.server.entries.get(self.path)
        if mood == "dripping":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.ended.wait(0.05):
                self.wfile.write(b"X")
        elif mood == "garbage":
            self.wfile.write(b"220 mail.example.com ESMTP\r\n")
            self.close_connection = True
        elif mood == "truncated":
            self._answer(200, (data or bytes(999))[:-9], length=9)
            self.close_connection = True
        elif mood == "huge":
            self._answer(200, bytes(5 << 20))
        elif mood == "lying":
            others = [other for path, other in self.server.entries.items() if path != self.path]
            self._answer(200, (others or [b"*\x03abc"])[-1])
        elif mood == "redirecting":
            self._answer(302, b"", Location=f"{self.server.url}/elsewhere")
        elif mood.isdecimal():
            self._answer(int(mood), b"no")
        else:
            self._answer(404 if data is None else 200, data or b"no such entry")

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        mood = self._begin()
        if mood.isdecimal():
            self._answer(int(mood), b"no")
        else:
            self.server.entries[self.path] = data
            self._answer(201, b"")

    def _begin(self) -> str:
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.sent.append(self.headers.get("Authorization", ""))
        if self.server.mood == "slow":
            self.server.ended.wait()
        if self.server.mood == "closing":
            self.close_connection = True
            raise ConnectionAbortedError
        return self.server.mood

    def _answer(self, status: int, data: bytes, length: int = 0, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) + length))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, form: str, *about: object) -> None:
        """Logs nothing."""
