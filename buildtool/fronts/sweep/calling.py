"""Runs a sweep, for the command and for Python; the class of its result."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.base.outfiles import check_writable, write
from buildtool.fronts.python.answers import frame
from buildtool.fronts.python.commands import spell_error
from buildtool.fronts.python.progress import Progress, listening
from buildtool.fronts.sweep import results, running
from buildtool.fronts.sweep.candidates import Job, Study, batches, file_stem, read_study, study_of
from buildtool.fronts.sweep.unbeaten import by_board, front
from buildtool.fronts.sweep.worker import FAILED, STATUS, Row, network_bytes

PathText = str | PathLike[str]
Tell = Callable[[str], object]


class Sweep:
    """The result of a sweep. `rows` has a dict of figures for each candidate, as pandas.DataFrame takes
    it.
    """

    def __init__(
        self, rows: Sequence[Row], title: str = "sweep", networks: Mapping[str, str] | None = None
    ) -> None:
        self.rows, self._title, self._networks = list(rows), title, dict(networks or {})

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def failed(self) -> list[Row]:
        """The rows of candidates that failed, with `code`, `error` and `step`."""
        return [row for row in self.rows if row[STATUS] == FAILED]

    def front(self, board: str) -> list[Row]:
        """Returns a board's candidates that no other candidate beats in RAM, flash, time and accuracy."""
        return front(by_board(self.rows).get(board, []))

    def save(self, path: PathText) -> None:
        """Writes the rows as .jsonl or .parquet, or the page as .html."""
        out = Path(path)
        write({out.name: self._content(out.suffix)}, out.parent)

    def _content(self, suffix: str) -> bytes:
        if suffix == ".jsonl":
            return results.json_lines(self.rows)
        if suffix == ".html":
            return self.html().encode()
        if suffix != ".parquet":
            raise UsageError(f"unknown suffix '{suffix}'", hint="give .jsonl, .parquet or .html")
        table = results.parquet(self.rows)
        if table is None:
            raise UsageError(
                "Parquet needs the package pyarrow", hint="pip install pyarrow, or save as .jsonl"
            )
        return table

    def html(self) -> str:
        """Returns the page: a complete HTML document that fetches nothing."""
        from buildtool.fronts.sweep.page import page

        return page(self.rows, self._title, self._networks).decode()

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.rows):,} candidates: {len(self.failed):,} failed>"

    def _repr_html_(self) -> str:
        return frame(self.html(), "height:720px")


def sweep(
    networks: Any,
    boards: PathText | Iterable[PathText] = (),
    *,
    steps: str | Iterable[str] = (),
    out: PathText | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress = None,
    **options: Any,
) -> Sweep:
    """Plans every network for every board with every choice of options, and returns a row for each.

    `networks` is the .toml file of a sweep; or paths, bytes, names of the zoo, or functions that return
    bytes, each alone or in a pair with a name. If an option is a list, each of its values is tried. `steps`
    may add emit, link, validate and profile. If the sweep was stopped, the same call with the same folder
    `out` continues it. `jobs` is the number of processes (default: one for each core; 0: this process),
    `scheduler` the address of a Dask cluster.
    """
    try:
        wanted = [steps] if isinstance(steps, str) else list(steps)
        if isinstance(networks, str | PathLike) and fspath(networks).endswith(".toml"):
            if boards or wanted or options:
                hint = "leave out boards, steps and options"
                raise UsageError("the .toml file of a sweep names them already", hint=hint)
            study = read_study(fspath(networks))
        else:
            study = study_of(networks, boards, options, wanted, Path.cwd())
        with listening(progress) as listen:
            tell = (lambda text: listen({"progress": {"text": text}})) if listen else (lambda _: None)
            return run(study, None if out is None else Path(out), jobs, scheduler, tell)
    except BuildtoolError as error:
        spell_error(error)
        raise


def run(
    study: Study, out: Path | None, jobs: int | None, scheduler: str | None, tell: Tell = lambda _: None
) -> Sweep:
    """Runs the candidates whose rows `out` does not have yet, and writes the results into this folder.

    If `out` is None, nothing is written. `jobs` and `scheduler` are as for `sweep`. `tell` gets progress in
    words.
    """
    with contextlib.ExitStack() as stack:
        if out is not None:
            stack.enter_context(results.alone(out))
            check_writable(out / results.RESULTS)
            check_writable(out / results.PAGE)
        record = results.Record(out)
        keys, places = list[str](), dict[str, str]()
        count = Count(study.total, tell)

        def missing() -> Iterator[Job]:
            for job in study.jobs():
                keys.append(job.key)
                places.setdefault(str(job.about["network"]), _place(job, study.folder))
                if job.key in record.rows:
                    count.skip()
                else:
                    yield job

        todo = missing()
        first = next(todo, None)
        if first is not None:
            pool: Any = running.Cluster(scheduler) if scheduler else None
            pool = pool or running.Processes(min(_processes(jobs), study.total or 1 << 20))
            stack.callback(pool.close)
            size, lanes = running.batch_size(study, pool.width), 1 if study.total is None else pool.lanes
            for new in running.run(batches(itertools.chain([first], todo), size, lanes), pool):
                record.add(new)
                count.add(new)
        rows = [results.in_order(record.rows[key]) for key in keys]
        title = Path(study.path).stem if study.path else "sweep"
        if out is None:
            return Sweep(rows, title, places)
        result = Sweep(rows, title, places | _write_networks(study, rows, places, set(keys), out))
        files = {results.RESULTS: results.json_lines(rows), results.PAGE: result.html().encode()}
        table = results.parquet(rows)
        write(files | ({} if table is None else {results.TABLE: table}), out)
        return result


def _processes(jobs: int | None) -> int:
    if jobs is None:
        return running.cores()
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 0 <= jobs <= 1024:
        raise UsageError(
            f"'{jobs}' is not a number of processes from 0 to 1024", option="jobs", hint="jobs=2"
        )
    return jobs


def _place(job: Job, folder: Path) -> str:
    """Returns how a command in `folder` names a job's network; "" if it is neither a file nor of the zoo."""
    model = "" if job.make is not None else job.requests[0][1]["model"]
    if not isinstance(model, Mapping) or "data" in model:
        return model if isinstance(model, str) else ""
    name, path = str(job.about["network"]), str(model["path"])
    return name if os.path.normpath(folder / name) == path else _seen_from(Path(path), folder)


def _write_networks(
    study: Study, rows: Sequence[Row], known: Mapping[str, str], keys: Set[str], out: Path
) -> dict[str, str]:
    """Writes those networks of the Pareto fronts that are not files yet, so that commands can name them.

    Returns the path of each written network by its name, relative to the study's folder. A network is left
    out if its function fails, or now returns another network than in the sweep: `keys` has the keys of the
    sweep's jobs. `known` maps a network's name to its path ("": it is not a file).
    """
    wanted = {row["network"] for own in by_board(rows).values() for row in front(own)}
    wanted = {name for name in wanted if not known[name]}
    files, places = dict[str, bytes](), dict[str, str]()
    one = replace(study, boards=study.boards[:1], choices=study.choices[:1])
    for job in one.jobs() if wanted else ():
        name = str(job.about["network"])
        data = None
        if name in wanted and job.key in keys:
            with contextlib.suppress(Exception):  # of a user's code
                data = network_bytes(job)
        if data is not None:
            stem, suffix = file_stem(name), "onnx" if name.endswith(".onnx") else "tflite"
            file = f"{results.NETWORKS}/{stem}.{suffix}"
            if file in files:  # other names may become the same name of a file
                file = f"{results.NETWORKS}/{stem}-{len(files)}.{suffix}"
            files[file] = data
            places[name] = _seen_from(out / file, study.folder)
    if files:
        write(files, out)
    return places


def _seen_from(path: Path, folder: Path) -> str:
    with contextlib.suppress(ValueError):
        return path.absolute().relative_to(folder.absolute()).as_posix()
    return str(path.absolute())


class Count:
    """Counts candidates, and tells how many are done, at which rate, and how long the rest will take."""

    def __init__(self, total: int | None, tell: Tell) -> None:
        self._total, self._tell, self._begin = total, tell, time.monotonic()
        self.skipped = self.done = 0
        self.status: Counter[str] = Counter()

    def skip(self) -> None:
        """Counts a candidate whose row the folder has already."""
        self.skipped += 1

    def add(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Counts the candidates of new rows, and tells the state."""
        self.done += len(rows)
        self.status.update(row[STATUS] for _, row in rows)
        self._tell(self.text(time.monotonic() - self._begin))

    def text(self, seconds: float) -> str:
        """Returns the state in words, `seconds` after the begin."""
        there, rate = self.skipped + self.done, self.done / max(seconds, 1e-9)
        words = [f"{there:,} of {self._total:,} candidates" if self._total else f"{there:,} candidates"]
        if failed := self.status[FAILED]:
            words.append(f"{failed:,} failed")
        words.append(f"{rate:,.1f}/s" if rate >= 1 else f"{1 / max(rate, 1e-9):,.1f} s each")
        if self._total and rate > 0:
            words.append(f"{_duration((self._total - there) / rate)} left")
        return ", ".join(words)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min" if minutes else f"{whole} s"
