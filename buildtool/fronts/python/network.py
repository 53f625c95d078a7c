"""The networks of the Python interface, and how it sends requests.

Every method of a network makes the request of the same name, whose options are keyword arguments (see the
reference of options). Paths may be text or `pathlib` paths, relative to the working folder. Each method also
takes `progress`: a function that receives a text when the service says what it does, or True for a status
line (of tqdm, if it is installed). Errors are BuildtoolError, or one of the classes that derive from it.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import options_of
from buildtool.base.errors import BuildtoolError, UsageError, did_you_mean, from_exception, shown
from buildtool.base.modes import Use
from buildtool.base.outfiles import keep_inputs, keep_networks, write, write_changed, write_text
from buildtool.client.planned import emitted_lines
from buildtool.fronts import asking
from buildtool.fronts.firmware import check_quantized, write_firmware
from buildtool.fronts.python import answers
from buildtool.fronts.python.commands import spell_error
from buildtool.fronts.python.progress import Progress, listening
from buildtool.fronts.python.signatures import OFFERED, offers_options, python_options
from buildtool.options import BY_NAME

if TYPE_CHECKING:
    from buildtool.base.session import Session

PathText = str | PathLike[str]


@dataclass(frozen=True)
class Settings:
    """Which process answers, and how the cache is used.

    `daemon` is auto, off, require, or None for $BUILDTOOL_DAEMON. `cache` is on, off or renew.
    """

    daemon: str | None = None
    cache: str = "on"

    def __post_init__(self) -> None:
        from buildtool.client import door

        door.mode(self.daemon)
        if self.cache not in list(Use):
            hint = did_you_mean(self.cache, list(Use))
            raise UsageError(f"unknown use of the cache '{self.cache}'", hint=hint)


@dataclass(frozen=True)
class Network:
    """A network: a file, the bytes of a file, or a network of the zoo. `buildtool.open` makes it.

    `outputs` are the tensors at which it ends (default: its own outputs).
    """

    model: str | Mapping[str, Any]
    outputs: tuple[str, ...] = ()
    settings: Settings = field(default=Settings(), repr=False)

    def __hash__(self) -> int:
        return hash((self._file, self.outputs, self.settings))

    def __repr__(self) -> str:
        given = "" if isinstance(self.model, str) else f", {len(self.model['data']):,} bytes"
        ends = f", outputs={self.outputs}" if self.outputs else ""
        return f"<Network {self._file}{given}{ends}>"

    @property
    def _file(self) -> str:
        return self.model if isinstance(self.model, str) else str(self.model["name"])

    @property
    def name(self) -> str:
        """The network's name: the name of its file without folders and suffix."""
        return Path(self._file).stem

    @offers_options
    def analyze(
        self, boards: PathText | Collection[PathText] = (), **options: Any
    ) -> answers.Analysis | answers.NetworkMemory:
        """Returns whether the network fits each board, which memory is too small, and what would help.

        Without `boards`, the answer has every known board. For an ONNX or Darknet file without `boards`, the
        answer is its memory, counted without a board.
        """
        named = _plain("boards", boards)
        answer = self._ask("analyze", {"boards": None if named == [] else named, **options})
        return answers.Analysis(answer) if "boards" in answer else answers.NetworkMemory(answer)

    @offers_options
    def plan(self, board: PathText, **options: Any) -> answers.Plan:
        """Returns how the network runs on a board: its kernels, its memory and its work."""
        return answers.Plan(self._ask("plan", {"board": board, **options}))

    @offers_options
    def front(self, board: PathText, **options: Any) -> answers.Front:
        """Returns the Pareto front of memory and work."""
        return answers.Front(self._ask("front", {"board": board, **options}))

    @offers_options
    def report(
        self,
        board: PathText,
        *,
        profile: bool | answers.Profile = False,
        against: PathText | None = None,
        **options: Any,
    ) -> answers.Report:
        """Returns a plan as a page, even if it does not fit.

        `profile` adds the instructions of every layer: with True, the network is run to count them; an
        earlier answer of `profile` is used as it is. `against` names an earlier report, or an answer saved as
        JSON; the page then shows the differences from it.
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

    @offers_options
    def trace(self, board: PathText, out: PathText, **options: Any) -> answers.Trace:
        """Writes the plan over time to the file `out`, for Perfetto and chrome://tracing."""
        from buildtool.fronts.texts.plan import trace_text

        request = self._request("trace", {"board": board, **options})
        answer = self._send(request, options)
        keep_inputs([(Path(out), None)], asking.input_files(request))
        return answers.Trace(
            {**answer, "files": write_text(Path(out), *answer["files"].values())},
            trace_text(answer, str(out)),
        )

    @offers_options
    def build(self, out: PathText, board: PathText, **options: Any) -> answers.Build:
        """Builds test firmware, and writes sources, weight image, .elf and files for flash to `out`."""
        from buildtool.fronts.texts.builds import build_text

        request = self._request("build", {"board": board, **options})
        answer = self._send(request, options)
        written, removed = write_firmware(answer["files"], Path(out), asking.input_files(request))
        text = build_text(answer, str(out), written, removed)
        return answers.Build({**answer, "files": written, "removed": removed}, text)

    @offers_options
    def emit(self, out: PathText, board: PathText, **options: Any) -> answers.Sources:
        """Writes the network's sources and weight image to the folder `out`."""
        answer = self._ask("emit", {"board": board, **options})
        keep_inputs([(Path(out) / name, data) for name, data in answer["files"].items()], answer["depends"])
        keep_networks(answer["files"], Path(out))
        text = emitted_lines(answer, Path(out))
        changed = write_changed(answer["files"], Path(out))
        return answers.Sources({**answer, "files": sorted(answer["files"]), "changed": changed}, text)

    @offers_options
    def bundle(self, out: PathText, board: PathText, **options: Any) -> answers.Bundle:
        """Writes a folder that any build system and any compiler can compile."""
        from buildtool.fronts.bundles.folder import put
        from buildtool.fronts.texts.builds import bundle_text

        answer = self._ask("bundle", {"board": board, **options})
        changed, removed = put(answer, Path(out))
        names = {"files": answer["network"]["files"], "changed": changed, "removed": removed}
        return answers.Bundle({**answer, **names}, bundle_text(answer, str(out), changed, removed))

    @offers_options
    def validate(self, board: PathText, **options: Any) -> answers.Validation | answers.DatasetValidation:
        """Builds and runs the network, and compares its outputs with the reference.

        `input` may be a numpy array of one input.
        """
        answer = self._ask("validate", {"board": board, **options})
        kind = answers.DatasetValidation if options.get("data") is not None else answers.Validation
        return kind(answer)

    @offers_options
    def profile(self, board: PathText, **options: Any) -> answers.Profile:
        """Builds and runs the network, and counts the instructions of every layer.

        `input` may be a numpy array of one input.
        """
        return answers.Profile(self._ask("profile", {"board": board, **options}))

    @offers_options
    def describe(self, board: PathText, **options: Any) -> answers.Description:
        """Returns what a build system compiles for a board, the flags, and the dependencies."""
        answer = self._ask("describe", {"board": board, **options})
        return answers.Description({**answer, "files": []})

    def operators(self) -> answers.Operators:
        """Returns the network's operators, and the kernels that run them."""
        return answers.Operators(self._ask("ops", {}))

    @offers_options
    def quantize(self, out: PathText, **options: Any) -> answers.Quantized:
        """Quantises a float network with `data`, and writes the quantised network to the file `out`."""
        request = self._request("quantize", options)
        with _spelled():
            check_quantized(Path(out), self._file, asking.input_files(request))
        answer = self._send(request, options)
        return answers.Quantized({**answer, "files": _write(out, answer)})

    def _request(self, kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
        ends = {"outputs": self.outputs} if self.outputs else {}
        return make_request(kind, {**ends, **options}, self.model)

    def _send(self, request: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        return send(request, self.settings, options.get("progress"))

    def _ask(self, kind: str, options: Mapping[str, Any]) -> Any:
        return self._send(self._request(kind, options), options)


def _write(out: PathText, answer: Mapping[str, Any]) -> list[str]:
    """Writes the only file of an answer to `out`. Returns the names of written files."""
    path, (data,) = Path(out), answer["files"].values()
    return write({path.name: data}, path.parent)


def make_request(
    kind: str, options: Mapping[str, Any], model: str | Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the request of a kind. Raises UsageError for an option that the kind does not have."""
    known = [option.name for option in python_options(kind, set())]
    for name in options:
        if name not in (*known, "progress"):
            raise UsageError(f"{kind} has no option '{name}'", hint=_hint(kind, name, known))
    values = {name: _plain(name, value) for name, value in options.items() if name != "progress"}
    return asking.build_request(kind, {"model": model, **values})


def _hint(kind: str, name: str, known: list[str]) -> str:
    if name == "model":
        return "buildtool.open takes the network"
    if spelt := [option.name for option in options_of(kind) if option.spelt == name]:
        return f"did you mean '{spelt[0]}'?"  # its name on the command line
    takers = [one for one in OFFERED if name in {option.name for option in options_of(one)}]
    return f"leave {name} out, or use it in {', '.join(takers)}" if takers else did_you_mean(name, known)


def _plain(name: str, value: Any) -> Any:
    """Returns an option's value as requests have it.

    Paths become text, plans and arrays become files, and numpy's numbers become Python's.
    """
    if isinstance(value, answers.Plan) and name == "plan":
        return {"name": f"{value.model}.plan", "data": value.locked}
    if isinstance(value, PathLike):
        value = fspath(value)
    if name == "input" and value is not None and not isinstance(value, str):
        return _array_file(value)
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        value = value.tolist()
    if isinstance(value, str) and name in BY_NAME and BY_NAME[name].many:
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping):
        return [_plain("", item) for item in value]
    return value


def _array_file(value: Any) -> dict[str, Any]:
    """Returns an array as a .npy file for a request. Raises UsageError if it does not have numbers."""
    import numpy as np

    data = io.BytesIO()
    try:
        np.save(data, np.asarray(value), allow_pickle=False)
    except (ValueError, TypeError, RuntimeError):  # RuntimeError: torch's
        raise UsageError(f"{shown(value)} is not a file or an array of numbers", option="input") from None
    return {"name": "input.npy", "data": data.getvalue()}


def send(request: Mapping[str, Any], settings: Settings, progress: Progress = None) -> Any:
    """Returns the answer to a request. Errors name options as keyword arguments."""
    with _spelled(), listening(progress) as listen:
        return asking.ask(
            request, daemon=settings.daemon, cache=settings.cache, opened=_opened, listen=listen
        )


@contextlib.contextmanager
def _spelled() -> Iterator[None]:
    """A context in which errors name options as keyword arguments."""
    try:
        yield
    except BuildtoolError as error:
        spell_error(error)
        raise
    except (OSError, MemoryError) as error:  # without a daemon
        raise from_exception(error) from error


class _Process:
    """The session of this process (None until it is needed), and a lock: it answers one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None

    def after_fork(self) -> None:
        """Drops lock and session in a forked child if the parent was answering: no thread would unlock."""
        if self.lock.locked():
            self.lock, self.session = threading.Lock(), None


_PROCESS = _Process()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_PROCESS.after_fork)


@contextlib.contextmanager
def _opened() -> Iterator[Session]:
    """A context with this process's session, which no other thread uses meanwhile."""
    from buildtool.api import open_session

    with _PROCESS.lock:
        _PROCESS.session = _PROCESS.session or open_session()
        yield _PROCESS.session
