"""The networks of the Python interface, and what can be asked without one.

Every method makes the request of its name, whose options are keyword arguments (see the reference of
options). Paths may be text or `pathlib` paths, relative to the working folder. Each method also takes
`progress`: a function that receives a text when the service says what it does, or True for a status line (of
tqdm, where it is installed). Errors are BuildtoolError, or one of the classes that derive from it.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import EVERY_KIND, options_of
from buildtool.base.errors import BuildtoolError, UsageError, did_you_mean
from buildtool.base.outfiles import check_writable, keep_inputs, write, write_changed
from buildtool.fronts import asking
from buildtool.fronts.firmware import write_firmware
from buildtool.fronts.python import answers
from buildtool.fronts.python.progress import Progress, listening
from buildtool.options import BY_NAME, PYTHON

if TYPE_CHECKING:
    from buildtool.base.session import Session

PathText = str | PathLike[str]
CACHE = ("on", "off", "renew")
_LOCK = threading.Lock()  # a session answers one request at a time
_SESSIONS: list[Session] = []  # this process's session, once there is one


@dataclass(frozen=True)
class Settings:
    """Which process answers (`daemon`: auto, off, require, or None for $BUILDTOOL_DAEMON), and whether the
    cache is on, off or renewed.
    """

    daemon: str | None = None
    cache: str = "on"

    def __post_init__(self) -> None:
        from buildtool.client import door

        door.mode(self.daemon)
        if self.cache not in CACHE:
            raise UsageError(f"unknown use of the cache '{self.cache}'", hint=did_you_mean(self.cache, CACHE))


@dataclass(frozen=True)
class Network:
    """A network: a file, the bytes of one, or a network of the zoo. `buildtool.open` makes it.

    `outputs` are the tensors at which it ends; () for those of the file.
    """

    model: str | Mapping[str, Any]
    outputs: tuple[str, ...] = ()
    settings: Settings = field(default=Settings(), repr=False)

    @property
    def name(self) -> str:
        """The network's name: that of its file without folders and suffix."""
        return Path(self.model if isinstance(self.model, str) else self.model["name"]).stem

    def analyze(
        self, boards: str | Collection[str] = (), **options: Any
    ) -> answers.Analysis | answers.NetworkMemory:
        """Returns whether the network fits each board, what binds, and what would help.

        Without `boards` every known board counts. ONNX and Darknet files without a board are only counted.
        """
        named = [boards] if isinstance(boards, str) else list(boards)
        answer = self._ask("analyze", {"boards": named or None, **options})
        return answers.Analysis(answer) if "boards" in answer else answers.NetworkMemory(answer)

    def plan(self, board: PathText, **options: Any) -> answers.Plan:
        """Returns how the network runs on a board: its kernels, its memory and its work."""
        return answers.Plan(self._ask("plan", {"board": board, **options}))

    def front(self, board: PathText, **options: Any) -> answers.Front:
        """Returns the Pareto front of memory and work."""
        return answers.Front(self._ask("front", {"board": board, **options}))

    def report(
        self,
        board: PathText,
        *,
        profile: bool | answers.Profile = False,
        against: PathText | None = None,
        **options: Any,
    ) -> answers.Report:
        """Returns a plan as a page, even if it does not fit.

        `profile` also shows the instructions of every layer: True runs the network, and a profile is taken as
        it is. `against` names an earlier report, or an answer saved as JSON, from which it differs.
        """
        from buildtool.fronts.changes import figures, reports

        earlier = figures.read(fspath(against)) if against is not None else None
        asked = {"board": board, **options}
        answer = self._ask("report", asked)
        if profile:
            of_run = {key: value for key, value in asked.items() if key not in ("peers", "period")}
            run = profile if isinstance(profile, answers.Profile) else self._ask("profile", of_run)
            answer = reports.with_image(answer, self._ask("build", of_run))
            answer = reports.with_counts(answer, run, "")
        if earlier is not None:
            answer = reports.compare_reports(answer, earlier)
        return answers.Report(answer)

    def trace(self, board: PathText, out: PathText, **options: Any) -> answers.Trace:
        """Writes the plan over time to the file `out`, for Perfetto and chrome://tracing."""
        answer = self._ask("trace", {"board": board, **options})
        return answers.Trace({**answer, "files": self._write(out, answer)})

    def build(self, out: PathText, board: PathText, **options: Any) -> answers.Build:
        """Builds test firmware, and writes sources, weight image, .elf and files for flash to `out`."""
        request = self._request("build", {"board": board, **options})
        answer = self._send(request, options)
        written, removed = write_firmware(answer["files"], Path(out), asking.input_files(request))
        return answers.Build({**answer, "files": written, "removed": removed})

    def emit(self, out: PathText, board: PathText, **options: Any) -> answers.Sources:
        """Writes the network's sources and weight image to the folder `out`."""
        answer = self._ask("emit", {"board": board, **options})
        keep_inputs([(Path(out) / name, data) for name, data in answer["files"].items()], answer["depends"])
        changed = write_changed(answer["files"], Path(out))
        return answers.Sources({**answer, "files": sorted(answer["files"]), "changed": changed})

    def bundle(self, out: PathText, board: PathText, **options: Any) -> answers.Bundle:
        """Writes a folder that any build system and any compiler can compile."""
        from buildtool.fronts.bundles.folder import put

        answer = self._ask("bundle", {"board": board, **options})
        changed, removed = put(answer, Path(out))
        files = answer["network"]["files"]
        return answers.Bundle({**answer, "files": files, "changed": changed, "removed": removed})

    def validate(self, board: PathText, **options: Any) -> answers.Validation | answers.DatasetValidation:
        """Builds, runs, and compares with the reference. `input` may be a numpy array of one input."""
        answer = self._ask("validate", {"board": board, **options})
        kind = answers.DatasetValidation if options.get("data") is not None else answers.Validation
        return kind(answer)

    def profile(self, board: PathText, **options: Any) -> answers.Profile:
        """Builds, runs, and counts the instructions of every layer. `input` may be a numpy array."""
        return answers.Profile(self._ask("profile", {"board": board, **options}))

    def describe(self, board: PathText, **options: Any) -> answers.Description:
        """Returns what a build system compiles for a board, the flags, and the dependencies."""
        answer = self._ask("describe", {"board": board, **options})
        return answers.Description({**answer, "files": []})

    def operators(self) -> answers.Operators:
        """Returns the network's operators, and the kernels that run them."""
        return answers.Operators(self._ask("ops", {}))

    def quantize(self, out: PathText, **options: Any) -> answers.Quantized:
        """Quantises a float network with `data`, and writes the quantised network to the file `out`."""
        check_writable(Path(out))  # calibrating takes minutes
        answer = self._ask("quantize", options)
        return answers.Quantized({**answer, "files": self._write(out, answer)})

    def _request(self, kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
        own = {"model": self.model, **({"outputs": ",".join(self.outputs)} if self.outputs else {})}
        return make_request(kind, {**own, **options})

    def _send(self, request: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        return send(request, self.settings, options.get("progress"))

    def _ask(self, kind: str, options: Mapping[str, Any]) -> Any:
        return self._send(self._request(kind, options), options)

    def _write(self, out: PathText, answer: Mapping[str, Any]) -> list[str]:
        """Writes the only file of an answer, not over the network itself."""
        path, (data,) = Path(out), answer["files"].values()
        keep_inputs([(path, None)], [self.model] if isinstance(self.model, str) else [])
        return write({path.name: data}, path.parent)


def make_request(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request of a kind; UsageError for an option that it does not have."""
    known = [option.name for option in options_of(kind)]
    for name in options:
        if name not in (*known, "progress"):
            hint = did_you_mean(name, known)
            if name in BY_NAME:
                hint = f"leave {name} out, or use it in {_takers(name)}"
            raise UsageError(f"{kind} has no option '{name}'", hint=hint)
    values = {name: _plain(name, value) for name, value in options.items() if name != "progress"}
    return asking.build_request(kind, values)


def _takers(name: str) -> str:
    return ", ".join(kind for kind in EVERY_KIND if any(option.name == name for option in options_of(kind)))


def _plain(name: str, value: Any) -> Any:
    """Returns a value as requests have it: paths as text, plans and arrays as files."""
    if isinstance(value, answers.Plan) and name == "plan":
        return {"name": f"{value.model}.plan", "data": value.locked}
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "__array_interface__"):
        import numpy as np

        data = io.BytesIO()
        np.save(data, value, allow_pickle=False)
        return {"name": f"{name}.npy", "data": data.getvalue()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(name, item) for item in value]
    return value


def send(request: Mapping[str, Any], settings: Settings, progress: Progress = None) -> Any:
    """Returns the answer to a request; its errors spell options as keyword arguments."""
    try:
        with listening(progress) as listen:
            return asking.ask(
                request, daemon=settings.daemon, cache=settings.cache, opened=_opened, listen=listen
            )
    except BuildtoolError as error:
        error.front = PYTHON
        raise


@contextlib.contextmanager
def _opened() -> Iterator[Session]:
    """Lends this process's session, which answers one request at a time."""
    from buildtool.api import open_session

    with _LOCK:
        if not _SESSIONS:
            _SESSIONS.append(open_session())
        yield _SESSIONS[0]
