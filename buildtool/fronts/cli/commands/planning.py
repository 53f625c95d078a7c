"""Commands that plan: what a network needs, and how it will run."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_inputs, write_text
from buildtool.fronts.cli import console
from buildtool.fronts.cli.commands import (
    Own,
    Result,
    ask,
    command,
    input_files,
    make_show_command,
    missing,
    out_argument,
    request_of,
    write_file,
)
from buildtool.options import spell, spell_name

if TYPE_CHECKING:
    from buildtool.schema.analysis import AnalysisAnswer, NetworkAnswer
    from buildtool.schema.builds import ArenaAnswer, TflmAnswer
    from buildtool.schema.plans import PlanAnswer, TraceAnswer
    from buildtool.schema.reports import ReportAnswer


@command(
    "Shows whether a network fits a board, which limit binds and by how much, and what would help.",
    positional=("model",),
    examples=(
        ("buildtool analyze wake.tflite", "On every known board."),
        ("buildtool analyze wake.tflite -b cortex-m4 -b my.toml", "On two of them."),
    ),
    begins="analysing the network",
    plans=True,
    multiplies=False,
)
def analyze(args: argparse.Namespace) -> Result:
    """Returns a verdict for each board, or the memory of a network that is counted without a board."""
    from buildtool.fronts.texts import analysis

    answer: AnalysisAnswer | NetworkAnswer = ask(args)
    if "boards" in answer:
        return answer, analysis.text(answer, spell, spell_name), 0
    return answer, analysis.network_text(answer), 0


@command(
    "Plans a network: its kernels, its memory and its work.",
    positional=("model",),
    optional=("board",),
    own=(
        Own(
            ("--emit",),
            "Writes the model with arena offsets for TensorFlow Lite Micro (tflm) instead of a plan for "
            "a board.",
            "FORMAT",
            choices=("tflm",),
        ),
        out_argument("FILE", "The file for the plan, for later builds (--plan); with --emit, for the model."),
        Own(
            ("--trace",),
            "Also writes the plan over time to FILE, for Perfetto and chrome://tracing.",
            "FILE",
        ),
        Own(("--buffers",), "Shows every operator's kernel and every buffer, for streamed plans too."),
    ),
    examples=(
        ("buildtool plan wake.tflite -b cortex-m4", "The cheapest plan that fits the board."),
        (
            "buildtool plan wake.tflite -b cortex-m4 --objective ram --max-f 1.1",
            "The smallest RAM for at most 10 % more work.",
        ),
        ("buildtool plan wake.tflite -b cortex-m4 --sarif plan.sarif", "In CI, with the errors as SARIF."),
    ),
    begins="planning",
    plans=True,
    multiplies=False,
)
def plan(args: argparse.Namespace) -> Result:
    """Shows the plan. Writes it to a file for builds (--out), trace viewers (--trace) or TFLM (--emit)."""
    from buildtool.fronts.texts import plan as report

    if args.emit:
        return _emit_plan(args)
    if args.board is None:
        raise missing("plan", "-b/--board")
    if args.trace:
        if args.out and Path(args.out).absolute() == Path(args.trace).absolute():
            raise UsageError("--out and --trace name the same file", hint="give them two names")
        from buildtool.api import open_session

        args.session = args.session or open_session()  # the trace's request reuses the plan
    answer: PlanAnswer = ask(args)
    text = "" if args.json else report.text(answer, buffers=args.buffers)
    written = []
    if args.out:
        written += write_file(args, args.out, answer["locked"], again=args.plan, is_text=True)
        text += f"\n\nwritten: {args.out}"
    if args.trace:
        trace: TraceAnswer = ask(argparse.Namespace(**{**vars(args), "compare": None}), "trace")
        (data,) = trace["files"].values()
        written += write_file(args, args.trace, data, is_text=True)
        text += f"\n\n{report.trace_text(trace, args.trace)}"
    return ({**answer, "files": written} if written else answer), text, 0


def _emit_plan(args: argparse.Namespace) -> Result:
    """Writes the model with arena offsets for TensorFlow Lite Micro. Options for boards have no effect."""
    from buildtool.fronts.texts import builds

    if not args.out:
        raise UsageError("--emit needs --out FILE.tflite", hint="see 'buildtool plan --help'")
    unused = [option.name for option in options_of("plan") if option not in options_of("tflm")]
    for name in ("buffers", "trace", *unused):
        if getattr(args, name):
            flag = spell_name(name) if name in unused else f"--{name}"
            raise UsageError(f"{flag} has no effect with --emit", hint=f"leave {flag} out")
    answer: TflmAnswer = ask(args, "tflm")
    (data,) = answer["files"].values()
    written = write_file(args, args.out, data)
    return {**answer, "files": written}, builds.tflm_text(answer, args.out), 0


front = make_show_command(
    "front",
    "front:text",
    "Lists the Pareto front of plans: memory against work.",
    positional=("model",),
    examples=(("buildtool front wake.tflite -b cortex-m4 --image stream", "Memory against work."),),
    begins="planning",
    plans=True,
    multiplies=False,
)


@command(
    "Draws a plan as one HTML file: the arena over time, the front, the network, layers and memories.",
    positional=("model",),
    own=(
        out_argument("FILE.html", "The file to write (default: report.html; with --json none)."),
        Own(("--profile",), "Also runs the network, and shows the instructions of every layer."),
        Own(
            ("--profiled",),
            "Shows the instructions of an earlier run, from the output of `buildtool profile --json`.",
            "FILE.json",
        ),
        Own(
            ("--against",),
            "Shows what differs from an earlier report, or from an answer saved as JSON.",
            "FILE",
        ),
    ),
    examples=(
        ("buildtool report wake.tflite -b cortex-m4 --out wake.html", "Then open wake.html in a browser."),
        ("buildtool report wake.tflite -b cortex-m4 --against wake.html --out new.html", "What changed?"),
    ),
    plans=True,
    multiplies=False,
)
def report(args: argparse.Namespace) -> Result:
    """Writes a plan as one HTML page.

    With --json it prints the data, and writes the page only if --out names its file.
    """
    from buildtool.fronts.changes import figures, reports
    from buildtool.fronts.texts.html.page import page

    if args.profile and args.profiled:
        raise UsageError("--profile and --profiled exclude each other", hint="leave one of them out")
    earlier = figures.read(args.against) if args.against else None
    profiled: Mapping[str, Any] | None = reports.read_profile(args.profiled) if args.profiled else None
    answer: ReportAnswer = ask(args)
    if args.profile:
        profiled = ask(args, "profile", without=("peers",))
        answer = reports.with_image(answer, ask(args, "build", without=("peers",)))
    if profiled is not None:
        answer = reports.with_counts(answer, profiled, args.profiled or "")
    if earlier is not None:
        answer = reports.compare_reports(answer, earlier)
    name = args.out or ("" if args.json else "report.html")
    if not name:
        return answer, "", 0
    out = Path(name)
    # The earlier report is read completely before.
    replaceable = os.path.realpath(args.against) if args.against else ""
    protected = {os.path.realpath(read) for read in [*input_files(args), *filter(None, [args.profiled])]}
    keep_inputs([(out, None)], protected - {replaceable})
    written = write_text(out, page(answer, spell))
    return {**answer, "files": written}, f"written: {name}", 0


@command(
    "Plans again whenever the network or the board is saved, and shows what changed.",
    kind="plan",
    positional=("model",),
    own=(Own(("--once",), "Ends after the first plan."),),
    examples=(("buildtool watch wake.tflite -b cortex-m4", "Until Ctrl-C."),),
    begins="planning",
    plans=True,
)
def watch(args: argparse.Namespace) -> Result:
    """Plans now and after every change of the files, and prints each round."""
    from buildtool.api import open_session
    from buildtool.client import door
    from buildtool.fronts.cli import watch as watching

    args.session = open_session()  # shared by all rounds, where no daemon is used
    files = watching.Files(lambda: input_files(args))
    lease = watching.Lease(wanted=door.mode(args.daemon) is not door.Mode.OFF and not args.once)

    def plan_again() -> Mapping[str, Any]:
        lease.renew()
        answer: PlanAnswer = ask(args)
        return answer

    with contextlib.closing(files), contextlib.closing(lease):
        return {}, "", watching.watch(plan_again, files, as_json=args.json, once=args.once)


@command(
    "Splits a trained network into narrow branches until it fits a board: trains, measures, writes int8.",
    positional=("network",),
    own=(
        out_argument(
            "DIR", "The folder for records and results. The same command continues there. (default: split)"
        ),
    ),
    examples=(
        (
            "buildtool split wake.keras --data photos -b nucleo-f767zi --ram 64K -o small",
            "Then: buildtool build small/split.tflite -b nucleo-f767zi --plan small/split.plan -o out",
        ),
        ("buildtool split vgg16 --width 0.25 --data cifar10 -b cortex-m4", "Trains the network first."),
    ),
)
def split(args: argparse.Namespace) -> Result:
    """Splits a network for a board. The exit status is 1 if the result misses the goals or is not exact."""
    from buildtool.split import run
    from buildtool.split.settings import OUT, read_settings

    settings = read_settings(request_of(args), args.out or OUT)
    try:
        with console.progress("loading Keras") as listen:
            return run.run(settings, lambda text: listen({"progress": {"text": text}}))
    except (KeyboardInterrupt, SystemExit):
        advice = f"{settings.out} keeps the trained networks; the same command continues from there"
        print(f"buildtool: stopped; {advice}", file=sys.stderr)
        raise


@command(
    "Places the buffers of an arena problem (.csv) as low as possible, or within a capacity.",
    positional=("file",),
    own=(out_argument("FILE", "Where to write the table with the offsets."),),
    examples=(("buildtool arena buffers.csv --capacity 4K -o solved.csv", "Offsets within 4 KiB."),),
    begins="placing buffers",
    multiplies=False,
)
def arena(args: argparse.Namespace) -> Result:
    """Places the buffers of an arena problem. The exit status is 1 if there is no placement."""
    from buildtool.fronts.texts import builds

    answer: ArenaAnswer = ask(args)
    solved, written = list(answer["files"].values()), list[str]()
    if args.out and solved:
        written = write_text(Path(args.out), solved[0])
    return {**answer, "files": written}, builds.arena_text(answer), 0 if solved else 1
