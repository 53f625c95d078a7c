"""What a process does with a batch of a sweep's jobs.

It runs all jobs in one session, which shares results between them, and returns rows of plain values.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.code_digest import code_digest
from buildtool.base.errors import BuildtoolError, MachineError, from_exception
from buildtool.options import spell

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.fronts.sweep.candidates import Job

Row = dict[str, Any]
STATUS, FAILED, DONE = "status", "failed", "done"
NOT_CACHED = ("networks",)  # megabytes for each network, which would displace the tables that others share
UNSTEADY = ("run_ms",)  # figures that differ from run to run
_LOCK = threading.Lock()  # a session answers one request at a time, and Dask's workers may have threads
_SESSIONS: list[Session] = []


def prepare() -> None:
    """Prepares a process of a local sweep: it ends with its parent, which alone handles Ctrl-C."""
    import multiprocessing
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # a command without stderr
        os.dup2(2, 1)  # what functions of users print is not the answer of the command
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)  # a killed parent leaves no message behind for which to wait

        threading.Thread(target=watch, daemon=True).start()
    _use_one_thread()
    gc.set_threshold(100_000, 20, 20)  # plans make many objects and few circles


def ready() -> int:
    """Returns the process ID. A call proves that the process has started."""
    return os.getpid()


def run_remote_batch(code: str, jobs: Sequence[Job]) -> list[tuple[str, Row]]:
    """Returns the rows of a batch that another machine has sent.

    Raises MachineError if that machine's code (of the digest `code`) differs from this one's.
    """
    if code != code_digest():
        hint = "install the same version of buildtool everywhere, and start the workers again"
        raise MachineError("a worker of the cluster has another version of buildtool", hint=hint)
    return run_batch(jobs)


def run_batch(jobs: Sequence[Job]) -> list[tuple[str, Row]]:
    """Returns (key, row) for each job."""
    from buildtool.api import caching, open_session

    with _LOCK:
        if not _SESSIONS:
            _use_one_thread()
            _SESSIONS.append(open_session(without=NOT_CACHED))
        keeper = _SESSIONS[0].keeper
        with caching(_SESSIONS[0]):
            rows = [(job.key, run_job(job, _SESSIONS[0])) for job in jobs]
        if keeper is not None:
            keeper.share()  # this process may be killed later
        return rows


def run_job(job: Job, session: Session) -> Row:
    """Returns a job's row: its figures by the names that `buildtool diff` uses, or its error."""
    row, step = {**job.about, STATUS: DONE}, ""
    if session.keeper is not None and session.keeper.remote is not None:
        session.keeper.remote.begin()  # each job has a request's time to wait for the server
    try:
        model = _make(job)
        for step, request in job.requests:
            row |= _figures(step, {**request, **model}, session)
    except Exception as error:
        reported = from_exception(error)
        if _has_changed(job):  # they may be back for the next attempt
            text = f"its files are not those with which the sweep began: {reported.text}"
            reported = MachineError(text, hint="the same command plans it again")
        row |= failure(reported, step)
    return row


def _has_changed(job: Job) -> bool:
    """Whether a file of a job was removed, or has other content than when the sweep began."""
    values = (value for _, request in job.requests for value in request.values())
    try:
        return any(
            hashlib.sha256(Path(one["path"]).read_bytes()).hexdigest() != one["sha256"]
            for value in values
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, Mapping) and "sha256" in one
        )
    except OSError:
        return True


def failure(error: BuildtoolError, step: str) -> Row:
    """Returns the last columns of a row for a candidate that failed in `step` ("": making its network)."""
    about = f"{error.operator}: " if error.operator else ""
    hint = error.help(spell)
    row = {STATUS: FAILED, "code": error.code, "error": f"{about}{error.text}", "step": step}
    return {**row, **({"hint": hint} if hint else {})}


def _make(job: Job) -> Mapping[str, Any]:
    """Returns the job's network under the key `model` of requests; {} if the requests have it already."""
    from buildtool.fronts.sweep.candidates import file_stem

    if job.make is None:
        return {}
    return {"model": {"name": f"{file_stem(job.about['network'])}.tflite", "data": job.make()}}


def _figures(step: str, request: Mapping[str, Any], session: Session) -> Row:
    """Runs a step of a job and returns its figures."""
    from buildtool.api import handle
    from buildtool.fronts.changes.figures import of_answer

    answer = _plan(request, session) if step == "plan" else handle(request, session)
    if step == "emit":
        return {"sources": len(answer["files"]), "source_bytes": sum(map(len, answer["files"].values()))}
    figures = of_answer("", answer)
    row: Row = {name: value for name, value in figures.totals.items() if name not in UNSTEADY}
    if step == "plan":
        row |= {name: answer[name] for name in ("strategy", "image", "cost_unit", "macs_layerwise")}
    if step == "link":
        row["flash"] = sum(value for name, value in row.items() if name.startswith("flash."))
    if step == "validate":
        row["within_bounds"] = answer["within_bounds"]
    return row


def _plan(request: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    """Returns the totals of a plan. The whole answer, which describes each region, would take longer."""
    from buildtool.api.answers.planreport import totals
    from buildtool.api.requests import parse
    from buildtool.base.session import working

    with working(session):
        parsed: Any = parse(request)
        return totals(parsed, session)


def _use_one_thread() -> None:
    """Makes numpy multiply matrices in one thread, because there is a process for each core."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def network_bytes(job: Job) -> bytes | None:
    """Returns the content of a network that is neither a file nor of the zoo; None for any other network."""
    if job.make is not None:
        return job.make()
    model = job.requests[0][1]["model"]
    return bytes(model["data"]) if isinstance(model, Mapping) and "data" in model else None
