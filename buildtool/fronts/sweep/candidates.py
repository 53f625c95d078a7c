"""The candidates of a sweep: every combination of networks, boards and options, as jobs for workers."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import msgpack

from buildtool import zoo
from buildtool.api.requests import EVERY_KIND, options_of, parse
from buildtool.base.code_digest import code_digest
from buildtool.base.errors import BuildtoolError, TargetError, UsageError, did_you_mean
from buildtool.base.toml import place, read_toml
from buildtool.client.files import Located
from buildtool.fronts.asking import build_request
from buildtool.fronts.sweep.module import Made, call, is_function, read_module
from buildtool.options import BY_NAME, MODEL_SUFFIXES
from buildtool.target.registry import board_chain, load_board

STEPS = {"plan": "plan", "emit": "emit", "link": "build", "validate": "validate", "profile": "profile"}
_SCHEMA = 1  # of the keys
_KEYS = ("networks", "boards", "steps", "options")
_MOST_CHOICES = 1_000_000  # of a table
_PATIENCE = 0.25  # seconds in which a batch is filled
_MOST_LISTED = 100_000  # jobs that are listed before the first one runs
_OWN = frozenset(("network", "board", "status", "code", "error", "step", "hint"))  # columns
_PATTERN = frozenset("*?[")
Source = str | bytes | Callable[[], bytes]  # a path or a name of the zoo, a file's bytes, or what makes them
Known = Mapping[str, Any]  # what is known of a network before, such as its accuracy: columns of its rows
Entry = tuple[str, Source, Known]  # a network, with its name first
Choice = dict[str, Any]  # options with their values


@dataclass(frozen=True)
class Job:
    """A candidate as a worker gets it.

    - `key`: identifies all that its row depends on.
    - `about`: the first columns of its row: network, board, options.
    - `requests`: for each step, its name and its request.
    - `make`: returns the network's file, if the requests do not have the network (None: they have it).
    """

    key: str
    about: Mapping[str, Any]
    requests: tuple[tuple[str, Mapping[str, Any]], ...]
    make: Callable[[], bytes] | None = None


@dataclass(frozen=True)
class Study:
    """What a sweep covers.

    - `networks`: a function that yields the networks.
    - `boards`, `choices`: each network is planned for every board with every choice of options.
    - `steps`: keys of STEPS.
    - `count`: the number of networks (None: not known before they are made).
    - `folder`: paths are relative to it.
    - `path`: the file that describes the sweep ("": no file).
    """

    networks: Callable[[], Iterator[Entry]]
    boards: tuple[str, ...]
    choices: tuple[Choice, ...] = ({},)
    steps: tuple[str, ...] = ("plan",)
    count: int | None = None
    folder: Path = field(default_factory=Path.cwd)
    path: str = ""

    @property
    def total(self) -> int | None:
        """The number of candidates; None if the number of networks is not known before they are made."""
        return None if self.count is None else self.count * len(self.boards) * len(self.choices)

    def jobs(self) -> Iterator[Job]:
        """Yields the jobs, network by network. Raises BuildtoolError if a network is wrong."""
        code, names = code_digest(), Names(self.path)
        settings = [self._settings(board, choice) for board in self.boards for choice in self.choices]
        for name, source, known in self.networks():
            names.add(name)
            model, make, identity = self._network(name, source)
            for about, requests, depends in settings:
                content = [_SCHEMA, code, name, identity, dict(known), depends]
                key = hashlib.sha256(msgpack.packb(content)).hexdigest()[:32]
                asked = requests if model is None else _with_model(requests, model)
                yield Job(key, {**known, "network": name, **about}, asked, make)

    def _network(self, name: str, source: Source) -> tuple[Any, Callable[[], bytes] | None, str]:
        """Returns (network, make, identity).

        - `network`: the network as in requests; None if a worker has to make it.
        - `make`: the function that returns the network's file; None unless a worker has to call it.
        - `identity`: a digest or a name that identifies the network.
        """
        if isinstance(source, bytes):
            file = f"{file_stem(name)}.tflite" if not name.endswith(".onnx") else f"{file_stem(name)}.onnx"
            return {"name": file, "data": source}, None, hashlib.sha256(source).hexdigest()
        if not isinstance(source, str):
            return None, source, source.identity if isinstance(source, Made) else name
        model = Located({"model": source}, str(self.folder)).request["model"]
        return model, None, model["sha256"] if isinstance(model, dict) else str(model)

    def _settings(self, board: str, choice: Choice) -> tuple[Choice, tuple[tuple[str, Choice], ...], Any]:
        """Returns what a job has besides its network: columns, requests and dependencies.

        The columns are the first ones of the job's row. There is a request for each step, with the step's
        name. The dependencies are plain values: board, options, and the digests of the files that they name.
        """
        requests = tuple((step, self._request(STEPS[step], board, choice)) for step in self.steps)
        located = requests[0][1]["board"]
        path = located["path"] if isinstance(located, dict) else located
        files = board_chain(path) if str(path).endswith(".toml") else []
        chain = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files]
        about = {"board": board, **{f"options.{name}": value for name, value in choice.items()}}
        return about, requests, [board, choice, chain, _contents(requests)]

    def _request(self, kind: str, board: str, choice: Choice) -> Choice:
        known = {option.name for option in options_of(kind)}
        values = {"board": board, **{name: value for name, value in choice.items() if name in known}}
        return dict(Located(build_request(kind, values), str(self.folder)).request)

    def check(self) -> Study:
        """Returns this study. Raises BuildtoolError, before anything runs, for wrong boards, steps or
        options.
        """
        for step in self.steps:
            if step not in STEPS:
                raise UsageError(f"there is no step '{step}'", hint=did_you_mean(step, STEPS))
        if not self.boards:
            raise UsageError("the sweep has no board", hint='boards = ["cortex-m4"]')
        known = {option.name for step in self.steps for option in options_of(STEPS[step])}
        for name in {name: None for choice in self.choices for name in choice}:
            if name not in known or name in ("board", "model"):
                raise UsageError(f"these steps have no option '{name}'", hint=_hint(name, known))
        for board in self.boards:
            _, requests, _ = self._settings(board, {})
            located = requests[0][1]["board"]
            load_board(located["path"] if isinstance(located, dict) else located)
        names = Names(self.path)
        for name, _, _ in self.networks() if self.count is not None else ():
            names.add(name)
        for choice, step in itertools.product(self.choices, self.steps):
            parse({**self._request(STEPS[step], self.boards[0], choice), "model": "a"})
        return self


class Names:
    """The names of a sweep's networks, as far as they are known."""

    def __init__(self, path: str) -> None:
        self._names, self._path = set[str](), path

    def add(self, name: str) -> None:
        """Adds a name. Raises UsageError if another network has the name, or if it is not valid Unicode."""
        if any("\ud800" <= one <= "\udfff" for one in name):
            raise UsageError(f"the name {name!r} is not Unicode", path=self._path, hint="rename it")
        if name in self._names:
            hint = "rename one, or give pairs of a name and a network"
            raise UsageError(f"two networks are called '{name}'", path=self._path, hint=hint)
        self._names.add(name)


def file_stem(name: str) -> str:
    """Returns the name of a file, without suffix, for a network's name."""
    stem = name.removesuffix(".tflite").removesuffix(".onnx")
    return "".join(one if one.isalnum() or one in "-_." else "_" for one in stem).strip(".")[:60] or "network"


def _with_model(requests: Iterable[tuple[str, Choice]], model: Any) -> tuple[tuple[str, Choice], ...]:
    return tuple((step, {**request, "model": model}) for step, request in requests)


def _contents(value: Any) -> Any:
    """Returns a plain value with digests in place of the files that it names."""
    if isinstance(value, Mapping):
        if "sha256" in value:
            return value["sha256"]
        return {str(key): _contents(item) for key, item in sorted(value.items())}
    return [_contents(item) for item in value] if isinstance(value, list | tuple) else value


def _hint(name: str, known: Iterable[str]) -> str:
    kinds = {STEPS[step]: step for step in STEPS}
    takers = [
        kinds[kind] for kind in EVERY_KIND if kind in kinds and name in {o.name for o in options_of(kind)}
    ]
    return f"add a step that has it: {', '.join(takers)}" if takers else did_you_mean(name, known)


# ---- from a .toml file -----------------------------------------------------------------------------------


def read_study(path: str) -> Study:
    """Returns the sweep that a .toml file describes. Raises UsageError with the place of a mistake."""
    try:
        table = read_toml(Path(path), "sweep")
    except TargetError as error:
        raise UsageError(error.text, path=path, line=error.line, column=error.column) from None
    try:
        for key in table:
            if key not in _KEYS:
                hint = (
                    f"write it below [options]: {key} = ..." if key in BY_NAME else did_you_mean(key, _KEYS)
                )
                option = "" if key in BY_NAME else key
                raise UsageError(f"a sweep has no key '{key}'", option=option, hint=hint)
        folder = Path(path).absolute().parent
        networks = _listed(table.get("networks", []))
        entries = [list(_entry(one, folder)) for one in networks if not _yields(one)]
        listed = all(not _yields(one) for one in networks)

        def every() -> Iterator[Entry]:
            known = iter(entries)
            for one in networks:
                yield from named(call(folder / one), str(one)) if _yields(one) else next(known)

        if not networks:
            raise UsageError("the sweep has no networks", hint='networks = ["wake.tflite"]')
        boards, steps = (
            tuple(dict.fromkeys(map(str, _listed(table.get(key, []))))) for key in ("boards", "steps")
        )
        count = sum(map(len, entries)) if listed else None
        options = [product(one) for one in _listed(table.get("options", {})) or [{}]]
        return Study(
            every, boards, distinct(itertools.chain(*options)), with_plan(steps), count, folder, path
        ).check()
    except BuildtoolError as error:
        of_text = next((key for key in _KEYS if key.removesuffix("s") in error.text), "")
        key = f"options.{error.option}" if error.option in BY_NAME else error.option or of_text
        line, column = place(Path(path).read_text(encoding="utf-8"), key)
        raise error.at(path=path, line=line, column=column) from None


def with_plan(steps: Iterable[str]) -> tuple[str, ...]:
    """Returns the steps in the order in which they run, with `plan`, which every candidate needs."""
    wanted = {"plan", *steps}
    return (*(step for step in STEPS if step in wanted), *sorted(wanted - set(STEPS)))


def product(table: Any) -> list[Choice]:
    """Returns every combination of one value from each list of a table (option -> values)."""
    if not isinstance(table, Mapping):
        raise UsageError("options are not a table", hint='[options] and ram = ["64K", "96K"] below it')
    lists = [_listed(value) for value in table.values()]
    if empty := [str(name) for name, values in zip(table, lists, strict=True) if not values]:
        raise UsageError("the list has no values", option=empty[0], hint=f"leave {empty[0]} out")
    if (count := math.prod(map(len, lists))) > _MOST_CHOICES:
        text = f"a table has {count:,} combinations, at most {_MOST_CHOICES:,} are possible"
        raise UsageError(text, hint="give fewer values, or make several sweeps")
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*lists)]


def distinct(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Returns the choices without repetitions: tables of options may overlap."""
    return tuple({repr(sorted(choice.items())): choice for choice in choices}.values())


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value or value == 0 else []


def _yields(entry: Any) -> bool:
    """Whether an entry of the list of networks names a function that yields networks."""
    return isinstance(entry, str) and is_function(entry)


def _entry(entry: Any, folder: Path) -> Iterator[Entry]:
    """Yields the networks of an entry: a path, a pattern, a name of the zoo, or a table of parameters."""
    if isinstance(entry, str):
        yield from _of_text(entry, folder)
        return
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        hint = 'networks = ["wake.tflite", {name = "mobilenetv2", size = [96, 128]}]'
        raise UsageError("a network is neither a name nor a table with a name", hint=hint)
    base = entry["name"]
    for choice in product({key: value for key, value in entry.items() if key != "name"}):
        given = ",".join(f"{key}={value}" for key, value in choice.items())
        if is_function(base):
            module = read_module(folder / base)
            label = f"{base.rpartition(':')[2]}:{given}" if given else base.rpartition(":")[2]
            yield label, Made(module, base.rpartition(":")[2], tuple(choice.items())), {}
        else:
            spelling = zoo.choose(f"{base}:{given}" if given else base).spelling
            yield spelling, spelling, {}


def _of_text(text: str, folder: Path) -> Iterator[Entry]:
    if _PATTERN & set(text) and not (folder / text).is_file():
        base = Path(Path(text).anchor or folder)  # a pattern may be absolute
        paths = sorted(base.glob(text.removeprefix(Path(text).anchor)))
        if not paths:
            raise UsageError(f"no network matches '{text}'", hint=f"the pattern is relative to {folder}")
        for path in paths:
            name = path.relative_to(folder) if base == folder else path
            yield name.as_posix(), str(path), {}
    elif text.lower().endswith(MODEL_SUFFIXES):
        if not (folder / text).is_file():
            raise UsageError(f"there is no network file '{text}'", hint=f"paths are relative to {folder}")
        yield text, str(folder / text), {}
    else:
        spelling = zoo.choose(text).spelling
        yield spelling, spelling, {}


# ---- from Python values ----------------------------------------------------------------------------------


def study_of(
    networks: Any, boards: Any, options: Mapping[str, Any], steps: Iterable[str], folder: Path
) -> Study:
    """Returns the study that Python values describe: see `buildtool.sweep`."""
    several = networks
    if isinstance(networks, str | bytes | PathLike) or callable(networks) or hasattr(networks, "model"):
        several = [networks]
    boards = [boards] if isinstance(boards, str | PathLike) else list(boards)
    entries = list(named(several.items() if isinstance(several, Mapping) else several, "network", folder))
    given = product({name: _texts(value) for name, value in options.items() if value is not None})
    names, count = tuple(dict.fromkeys(map(fspath, boards))), len(entries)
    return Study(lambda: iter(entries), names, distinct(given), with_plan(steps), count, folder).check()


def _texts(value: Any) -> Any:
    """Returns an option's value or list of values; paths become text, and NumPy's numbers become Python's."""
    if isinstance(value, list | tuple):
        return [_texts(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return fspath(value) if isinstance(value, PathLike) else value


def named(networks: Iterable[Any], origin: str, folder: Path | None = None) -> Iterator[Entry]:
    """Yields (name, source, further columns) of the networks that a function or a list gives.

    `origin` names the function or list in messages. Raises UsageError for a value that is not a network.
    """
    for number, one in enumerate(networks):
        parts = one if isinstance(one, tuple) and len(one) in (2, 3) else ("", one)
        name, source, known = parts if len(parts) == 3 else (*parts, {})
        if not isinstance(name, str):
            raise UsageError(f"{origin}: the name {name!r} of a network is not a text")
        if getattr(source, "outputs", ()):
            raise UsageError("a sweep ends networks itself", option="outputs", hint="give it outputs=...")
        source = getattr(source, "model", source)  # of `buildtool.open`
        label = f"{origin.rpartition(':')[2]}-{number:04}"
        if isinstance(source, Mapping) and "data" in source:
            label, source = Path(source["name"]).stem, source["data"]
        if isinstance(source, str | PathLike):
            for path_name, path, _ in _of_text(fspath(source), folder or Path.cwd()):
                yield name or path_name, path, _columns(origin, known)
        elif isinstance(source, bytes | bytearray | memoryview) or callable(source):
            made = source if callable(source) else bytes(source)
            yield name or label, made, _columns(origin, known)
        else:
            hint = "give paths, bytes, names of the zoo, or pairs of a name and one of these"
            raise UsageError(f"{origin}: {type(source).__name__} is not a network", hint=hint)


def _columns(origin: str, known: Mapping[str, Any]) -> Known:
    """Returns the further columns of a network as plain values, without None, NaN and infinity.

    `known` has the columns that the user's function or list gives; `origin` names it in messages. Raises
    UsageError for other values, and for names of the sweep's own columns.
    """
    plain = {str(key): value.item() if hasattr(value, "item") else value for key, value in known.items()}
    for key, value in plain.items():
        if value is not None and not isinstance(value, int | float if key == "top1" else int | float | str):
            wanted = "not a number" if key == "top1" else "neither a number nor a text"
            raise UsageError(f"{origin}: '{key}' of a network is {wanted}")
        if key in _OWN or key.startswith("options."):
            raise UsageError(f"{origin}: a sweep has a column '{key}' of its own", hint="give another name")
    return {
        key: value
        for key, value in plain.items()
        if value is not None and (isinstance(value, str) or math.isfinite(value))
    }


def batches(jobs: Iterable[Job], size: int, lanes: int = 1) -> Iterator[Sequence[Job]]:
    """Yields jobs in batches of at most `size`.

    Neighbours in the list of jobs share tables of the planner. If two processes worked on neighbours, both
    would compute the same tables. So the list is cut into `lanes` parts of equal length, and batches come
    alternately from each part. If jobs come slowly, a batch is sent before it is full.
    """
    rest = iter(jobs)
    if lanes > 1:
        every = list(itertools.islice(rest, _MOST_LISTED))
        length = max(-(-len(every) // (lanes * size)), 1) * size  # of a part: whole batches
        starts = [lane * length + at for at in range(0, length, size) for lane in range(lanes)]
        yield from (every[start : start + size] for start in starts if start < len(every))
    batch, began = list[Job](), time.monotonic()
    for job in rest:
        batch.append(job)
        if len(batch) == size or time.monotonic() - began > _PATIENCE:
            yield batch
            batch, began = [], time.monotonic()
    if batch:
        yield batch
