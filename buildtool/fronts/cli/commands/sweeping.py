"""The command that plans many candidates: networks times boards times options."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from buildtool.base.errors import UsageError
from buildtool.fronts.cli import console
from buildtool.fronts.cli.commands import FAIL_IF, Own, Result, command, out_argument

_OUT = "sweep"


@command(
    "Plans networks for boards with options, every combination; also builds, validates and profiles them.",
    kind="",
    own=(
        Own(("sweep",), "A .toml file with networks, boards, options and steps (docs/guides/sweep.md)."),
        out_argument("DIR", "The folder for results. The same command continues there. (default: sweep)"),
        Own(("--jobs",), "Number of processes on this machine. (default: one for each core)", "N"),
        Own(("--scheduler",), "Runs on a Dask cluster: the address of its scheduler.", "ADDRESS"),
        Own(("--diff",), "Shows what changed since the results of an earlier sweep.", "OLD.jsonl"),
        FAIL_IF,
    ),
    examples=(
        ("buildtool sweep sweep.toml -o results", "Then open results/sweep.html in a browser."),
        ("buildtool sweep sweep.toml --diff old.jsonl --fail-if ram+0,ms+2%", "In CI: what grew."),
    ),
    multiplies=False,
)
def sweep(args: argparse.Namespace) -> Result:
    """Runs a sweep. The exit status is 1 if a limit is exceeded, or if every candidate failed."""
    from buildtool.fronts.changes.compare import parse_limit
    from buildtool.fronts.sweep import calling, changes, results, text
    from buildtool.fronts.sweep.candidates import read_study

    if args.fail_if is not None and not args.diff:
        raise UsageError("--fail-if needs --diff and earlier results", hint="leave --fail-if out")
    if args.jobs is not None and args.scheduler:
        raise UsageError("--jobs and --scheduler exclude each other", hint="leave one of them out")
    limits = [parse_limit(limit) for limit in args.fail_if.split(",")] if args.fail_if is not None else []
    earlier = results.read_results(args.diff) if args.diff else None
    study, out = read_study(args.sweep), Path(args.out or _OUT)
    try:
        with console.progress("preparing the sweep") as listen:
            done = calling.run(
                study,
                out,
                _jobs(args.jobs),
                args.scheduler,
                lambda text: listen({"progress": {"text": text}}),
            )
    except (KeyboardInterrupt, SystemExit):
        print(f"buildtool: stopped; {out} keeps the rows; the same command continues", file=sys.stderr)
        raise
    names = [name for name in (results.RESULTS, results.TABLE, results.PAGE) if (out / name).exists()]
    answer = {"rows": done.rows, "files": names}
    said = f"{text.text(done.rows)}\n\nwritten: {out / results.PAGE}, {out / results.RESULTS}"
    status = 1 if done.rows and len(done.failed) == len(done.rows) else 0
    if earlier is None:
        return answer, said, status
    differing = changes.compare(earlier, done.rows, limits)
    answer["changes"] = [dataclasses.asdict(one) for one in differing]
    exceeded = any(one.exceeded for one in differing)
    return answer, f"{said}\n\n{text.changes_text(differing)}", 1 if exceeded else status


def _jobs(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 5):
        raise UsageError(f"'{text}' is not a number of processes", option="jobs", hint="--jobs 2")
    return int(text)
