"""The subcommands of `buildtool`: one subcommand, one function; each sends one request to the service."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_inputs, keep_networks, write_changed
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli import console
from buildtool.fronts.cli.asking import ask, inputs
from buildtool.options.spelling import spelled, spelled_name

if TYPE_CHECKING:
    from buildtool.base.session import Session
    from buildtool.fronts.changes.figures import Figures
    from buildtool.fronts.changes.limits import Floor, Limit
    from buildtool.schema.analysis import AnalysisAnswer, NetworkAnswer
    from buildtool.schema.boards import BoardsAnswer, OpsAnswer, ZooAnswer, ZooFile
    from buildtool.schema.builds import (
        ArenaAnswer,
        BuildAnswer,
        BundleAnswer,
        DescribeAnswer,
        EmitAnswer,
        SizesAnswer,
        TflmAnswer,
    )
    from buildtool.schema.checks import CheckAnswer
    from buildtool.schema.datasets import DatasetAnswer
    from buildtool.schema.fronts import FrontAnswer
    from buildtool.schema.plans import PlanAnswer, TraceAnswer
    from buildtool.schema.reports import ReportAnswer
    from buildtool.schema.runs import DebugAnswer, FlashAnswer, ProfileAnswer, ValidationAnswer

Result = tuple[Mapping[str, object], str, int]  # the answer, its text, the exit status


def analyze(args: argparse.Namespace) -> Result:
    """A verdict for each board, or the memory of a network without one."""
    from buildtool.fronts.texts import analysis, network

    answer: AnalysisAnswer | NetworkAnswer = ask(args)
    if "boards" in answer:
        return answer, analysis.text(answer, spelled, spelled_name), 0
    return answer, network.text(answer), 0


def plan(args: argparse.Namespace) -> Result:
    """The plan; with --out a file to build by, with --trace one to look at, with --emit one for others."""
    from buildtool.fronts.texts import plan as report

    if args.emit:
        return _emit_plan(args)
    if args.board is None:
        what = "the following arguments are required: -b/--board"
        raise UsageError(what, hint="see 'buildtool plan --help'")
    if args.trace:
        if args.out and Path(args.out).absolute() == Path(args.trace).absolute():
            raise UsageError("--out and --trace name the same file", hint="give them two names")
        args.session = args.session or _kept_session()  # the trace's request finds the plan there
    answer: PlanAnswer = ask(args)
    text = report.text(answer, buffers=args.buffers)
    written = []
    if args.out:
        out = Path(args.out)
        plan_again = os.path.realpath(args.plan) if args.plan else ""  # it is read as a whole before
        keep_inputs([(out, None)], {os.path.realpath(name) for name in inputs(args)} - {plan_again})
        written += write_files({out.name: answer["locked"]}, out.parent)
        text += f"\n\nwritten: {args.out}"
    if args.trace:
        said, names = _trace(args)
        written += names
        text += f"\n\n{said}"
    return ({**answer, "files": written} if written else answer), text, 0


def _trace(args: argparse.Namespace) -> tuple[str, list[str]]:
    """Writes a plan over time; what is said of it, and the file's name."""
    from buildtool.fronts.texts import trace as report

    answer: TraceAnswer = ask(argparse.Namespace(**{**vars(args), "compare": None}), "trace")
    out = Path(args.trace)
    keep_inputs([(out, None)], inputs(args))
    (data,) = answer["files"].values()
    return report.text(answer, args.trace), write_files({out.name: data}, out.parent)


def _kept_session() -> Session:
    """A session for several requests, where no daemon is asked."""
    from buildtool.api import kept_session

    return kept_session()


def _emit_plan(args: argparse.Namespace) -> Result:
    """Writes a plan as others read it; a board and its options have no part in it."""
    from buildtool.fronts.texts import tflm

    if not args.out:
        raise UsageError("--emit needs --out FILE.tflite", hint="see 'buildtool plan --help'")
    for name in ("buffers", "trace"):
        if getattr(args, name):
            raise UsageError(f"--{name} has no effect with --emit", hint=f"leave --{name} out")
    answer: TflmAnswer = ask(args, "tflm")
    out = Path(args.out)
    keep_inputs([(out, None)], inputs(args))
    (data,) = answer["files"].values()
    written = write_files({out.name: data}, out.parent)
    return {**answer, "files": written}, tflm.text(answer, args.out), 0


def front(args: argparse.Namespace) -> Result:
    """The points of the front."""
    from buildtool.fronts.texts import front as report

    answer: FrontAnswer = ask(args)
    return answer, report.text(answer), 0


def report(args: argparse.Namespace) -> Result:
    """A plan drawn, as one HTML file; with --json its data, and no file unless --out names one."""
    from buildtool.fronts.changes import reports
    from buildtool.fronts.texts.html.page import page

    if args.profile and args.profiled:
        raise UsageError("--profile and --profiled exclude each other", hint="leave one of them out")
    earlier = reports.read(args.against) if args.against else None
    profiled: Mapping[str, Any] | None = reports.read_profile(args.profiled) if args.profiled else None
    answer: ReportAnswer = ask(args)
    if args.profile:
        profiled = ask(args, "profile", without=("peers",))
        answer = reports.with_image(answer, ask(args, "build", without=("peers",)))
    if profiled is not None:
        answer = reports.with_counts(answer, profiled, args.profiled or "")
    if earlier is not None:
        answer = reports.compared(answer, earlier)
    name = args.out or ("" if args.json else "report.html")
    if not name:
        return answer, "", 0
    out = Path(name)
    again = os.path.realpath(args.against) if args.against else ""  # it is read as a whole before
    kept = {os.path.realpath(read) for read in [*inputs(args), *filter(None, [args.profiled])]}
    keep_inputs([(out, None)], kept - {again})
    written = write_files({out.name: page(answer, spelled)}, out.parent)
    return {**answer, "files": written}, f"written: {name}", 0


def build(args: argparse.Namespace) -> Result:
    """Firmware, written to a folder; with --bundle what other build systems compile."""
    from buildtool.fronts.texts import build as report

    if args.bundle:
        return _bundle(args)
    answer: BuildAnswer = ask(args)
    keep_inputs(_below(args.out, answer["files"]), inputs(args))
    keep_networks(answer["files"], Path(args.out))
    written = write_files(answer["files"], Path(args.out))
    return {**answer, "files": written}, report.text(answer, args.out, written), 0


def _bundle(args: argparse.Namespace) -> Result:
    """Puts a network into a folder that any build system compiles."""
    from buildtool.fronts.bundles.folder import put
    from buildtool.fronts.texts import bundle as report

    answer: BundleAnswer = ask(args, "bundle")
    changed, removed = put(answer, Path(args.out))
    named = {"files": answer["network"]["files"], "changed": changed, "removed": removed}
    return {**answer, **named}, report.text(answer, args.out, changed, removed), 0


def emit(args: argparse.Namespace) -> Result:
    """The sources of a network, written where they changed; with a stamp and a depfile for a build system."""
    from buildtool.base import depfile
    from buildtool.base.identity import code_files

    if args.depfile and not args.stamp:
        raise UsageError("--depfile needs --stamp, its target", hint="see 'buildtool emit --help'")
    began = time.time_ns()
    answer: EmitAnswer = ask(args)
    rules = [(Path(name), None) for name in (args.stamp, args.depfile) if name]
    keep_inputs([*_below(args.out, answer["files"]), *rules], answer["depends"])
    keep_networks(answer["files"], Path(args.out))
    rule = None
    if args.depfile:
        rule = args.depfile, depfile.depfile(args.stamp, [*answer["depends"], *code_files()])
    if args.stamp:
        depfile.remove(args.stamp)
    changed = write_changed(answer["files"], Path(args.out))
    if args.stamp:
        depfile.finish(args.stamp, rule, began)
    named = sorted(answer["files"])
    text = f"{args.out}: written: {', '.join(changed)}" if changed else f"{args.out}: nothing changed"
    return {**answer, "files": named, "changed": changed}, text, 0


def describe(args: argparse.Namespace) -> Result:
    """What a build system has to know; with --out the linker script is written."""
    from buildtool.fronts.texts import description

    answer: DescribeAnswer = ask(args)
    script = answer["script"]
    files = {script["name"]: script["data"]} if args.out and script else {}
    written = write_changed(files, Path(args.out)) if files else []
    return {**answer, "files": written}, description.text(answer), 0


def sizes(args: argparse.Namespace) -> Result:
    """The memories that an image takes; with --out its .bin files are written."""
    from buildtool.fronts.texts import estimate
    from buildtool.fronts.texts import sizes as report

    depth = _depth(args)
    for name in ("markdown", "fail_if"):
        if getattr(args, name) and not args.diff:
            option = spelled_name(name)
            raise UsageError(f"{option} needs --diff, the image to compare with", hint=f"leave {option} out")
    answer: SizesAnswer = ask(args)
    level = f"level: {answer['level_text']}"
    table = report.text(answer["sizes"], answer["stacks"])
    text = "\n".join([table, level, *estimate.note_lines(answer["note"])])
    files = {**answer["files"], "sizes.txt": (text + "\n").encode()}
    written = write_files(files, Path(args.out)) if args.out else []
    if args.diff:
        return _sizes_since(args, answer, depth or report.DEPTH)
    if depth or not args.out:
        text += "\n\n" + report.tree(answer["parts"], answer["files_from"], depth or report.DEPTH)
    return {**answer, "files": written}, text, 0


def _sizes_since(args: argparse.Namespace, answer: SizesAnswer, depth: int) -> Result:
    """What changed since an earlier image, whose map is looked for beside it."""
    from buildtool.fronts.changes import figures

    earlier = {
        **vars(args),
        "elf": args.diff,
        "map": None,
        "formats": None,
        "sign": None,
        "image_version": None,
    }
    before: SizesAnswer = ask(argparse.Namespace(**earlier))
    names = (args.diff, args.elf)
    found = [figures.of_answer(name, one) for name, one in zip(names, (before, answer), strict=True)]
    return _compared(args, found[0], found[1], depth)


def _depth(args: argparse.Namespace) -> int:
    """The levels of a tree that are asked for; 0: none were named."""
    if args.depth is None:
        return 0
    if not (args.depth.isascii() and args.depth.isdecimal() and 0 < len(args.depth) < 6 and int(args.depth)):
        raise UsageError(f"'{args.depth}' is not a whole number above 0", option="depth", hint="--depth 3")
    return int(args.depth)


def validate(args: argparse.Namespace) -> Result:
    """The verdict; the exit status is 1 where the output differs beyond its bound, or accuracy is too low."""
    from buildtool.fronts.changes import limits
    from buildtool.fronts.texts import dataset, validation

    if args.fail_if is not None and args.data is None:
        raise UsageError("it has no effect without a data set", option="fail_if", hint="leave it out")
    wanted = [limits.floor(one) for one in args.fail_if.split(",")] if args.fail_if is not None else []
    if args.data is not None:
        found: DatasetAnswer = ask(args)
        below = limits.undercut(wanted, found)
        failed = found["within_bounds"] is False or below
        return {**found, "exceeded": below}, dataset.text(found, below), 1 if failed else 0
    answer: ValidationAnswer = ask(args)
    return answer, validation.text(answer), 0 if answer["within_bounds"] else 1


def profile(args: argparse.Namespace) -> Result:
    """The table of the layers; the exit status is 1 where the output differs."""
    from buildtool.fronts.texts import profile as report

    answer: ProfileAnswer = ask(args)
    return answer, report.text(answer), 0 if answer["within_bounds"] else 1


def debug(args: argparse.Namespace) -> Result:
    """A session with a debugger: what it needs is written and said, and its server runs until it ends."""
    from buildtool.fronts.cli import debugger

    answer: DebugAnswer = ask(args)
    if not args.json:
        debugger.need_port(answer)  # before a session that runs there loses its files
    debugger.write(answer, Path(args.out))
    if args.json:
        return {**answer, "files": sorted(answer["files"])}, "", 0
    console.write(debugger.text(answer, Path(args.out)))
    return {}, "", debugger.serve(answer, Path(args.out))


def flash(args: argparse.Namespace) -> Result:
    """An image for a board's flash, written to a folder, and flashed from there; with --json only written."""
    from buildtool.fronts.cli import flasher

    answer: FlashAnswer = ask(args)
    keep_inputs(_below(args.out, answer["files"]), inputs(args))
    written = write_files(answer["files"], Path(args.out))
    if args.json:
        return {**answer, "files": written}, "", 0
    console.write(flasher.text(answer, Path(args.out)))
    return {}, "", flasher.flash(answer, Path(args.out))


def ops(args: argparse.Namespace) -> Result:
    """The operators and their kernels."""
    from buildtool.fronts.texts import lists

    answer: OpsAnswer = ask(args)
    return answer, lists.ops(answer), 0


def boards(args: argparse.Namespace) -> Result:
    """The boards and their memories."""
    from buildtool.fronts.texts import lists

    answer: BoardsAnswer = ask(args)
    return answer, lists.boards(answer), 0


def target(args: argparse.Namespace) -> Result:
    """The kernels of a plugin, checked; the exit status is 1 where one failed."""
    from buildtool.fronts.texts import check as report

    answer: CheckAnswer = ask(args)
    failed = {row["failed"]["name"]: row["failed"]["model"] for row in answer["kernels"] if row["failed"]}
    written = write_files(failed, Path(args.out)) if args.out and failed else []
    return {**answer, "files": written}, report.text(answer, args.out or ""), 0 if answer["exact"] else 1


def zoo(args: argparse.Namespace) -> Result:
    """The networks by name, or one of them as a file."""
    from buildtool.fronts.texts import lists

    if args.out and not args.model:
        raise UsageError("--out needs the name of a network", hint="see 'buildtool zoo' for the names")
    answer: ZooAnswer | ZooFile = ask(args)
    if "networks" in answer:
        return answer, lists.zoo(answer), 0
    written = write_files(answer["files"], Path(args.out or "."))
    return {**answer, "files": written}, f"written: {', '.join(written)}", 0


def split(args: argparse.Namespace) -> Result:
    """A network split for a board; the exit status is 1 where it misses the goals, or is not exact."""
    from buildtool.options.arguments import request
    from buildtool.split import run
    from buildtool.split.wanted import OUT, wanted

    asked = wanted(request(args), args.out or OUT)
    try:
        with console.progress("loading Keras") as listen:
            return run.run(asked, lambda text: listen({"progress": {"text": text}}))
    except (KeyboardInterrupt, SystemExit):
        where = f"{asked.out} keeps what was trained"
        print(f"buildtool: stopped; {where}, and the same command goes on from there", file=sys.stderr)
        raise


def arena(args: argparse.Namespace) -> Result:
    """The offsets of an arena problem; the exit status is 1 where there is no placement."""
    from buildtool.fronts.texts import arena as report

    answer: ArenaAnswer = ask(args)
    solved, written = list(answer["files"].values()), list[str]()
    if args.out and solved:
        out = Path(args.out)
        written = write_files({out.name: solved[0]}, out.parent)
    return {**answer, "files": written}, report.text(answer), 0 if solved else 1


def diff(args: argparse.Namespace) -> Result:
    """What changed between two files; the exit status is 1 where a limit is exceeded."""
    from buildtool.fronts.changes import figures
    from buildtool.fronts.texts import sizes as report

    depth = _depth(args) or report.DEPTH
    _compare_arguments(args)
    return _compared(args, figures.read(args.before), figures.read(args.after), depth)


def _compare_arguments(args: argparse.Namespace) -> list[Limit | Floor]:
    """The limits that are given, before anything is read; UsageError for what cannot be."""
    from buildtool.fronts.changes import limits

    if args.json and args.markdown:
        raise UsageError("--json and --markdown exclude each other", hint="leave one of them out")
    return [limits.parse(limit) for limit in args.fail_if.split(",")] if args.fail_if is not None else []


def _compared(args: argparse.Namespace, before: Figures, after: Figures, depth: int) -> Result:
    """What differs between two files' figures; the exit status is 1 where a limit is exceeded."""
    import dataclasses

    from buildtool.fronts.changes import compare, limits
    from buildtool.fronts.texts import changes as report

    found = compare.changes(before, after)
    beyond = limits.exceeded(_compare_arguments(args), found.totals)
    shown = report.markdown if args.markdown else report.text
    text = shown(found, beyond, depth)
    said = {name: [dataclasses.asdict(row) for row in getattr(found, name)] for name in report.PARTS}
    return {**said, "equal": found.is_equal, "exceeded": beyond}, text, 1 if beyond else 0


def watch(args: argparse.Namespace) -> Result:
    """Plans on every save; what it shows is printed as it comes."""
    from buildtool.client import door
    from buildtool.fronts.cli import watch as watching

    args.session = _kept_session()  # of all rounds, where no daemon is asked
    files = watching.Files(lambda: inputs(args))
    lease = watching.Lease(wanted=door.mode(args.daemon) is not door.Mode.OFF and not args.once)

    def plan_again() -> Mapping[str, Any]:
        lease.renew()
        answer: PlanAnswer = ask(args)
        return answer

    with contextlib.closing(files), contextlib.closing(lease):
        return {}, "", watching.watch(plan_again, files, as_json=args.json, once=args.once)


def daemon(args: argparse.Namespace) -> Result:
    """The planner's daemon."""
    from buildtool.fronts.cli import upkeep

    return upkeep.daemon_command(args.action, every=args.all)


def cache(args: argparse.Namespace) -> Result:
    """What is kept of earlier plans."""
    from buildtool.fronts.cli import upkeep

    if args.words and args.action != "explain":
        raise UsageError(f"words have no effect on 'cache {args.action}'", hint="leave them out")
    return upkeep.cache_command(args.action, args.words)


def ide(args: argparse.Namespace) -> Result:
    """Files for an editor, merged into those that are there."""
    from buildtool.emit.names import identifier
    from buildtool.fronts.vscode.merge import FOLDER, merged, places
    from buildtool.fronts.vscode.wanted import Subject
    from buildtool.options import MODEL_SUFFIXES
    from buildtool.plan.models import net_name
    from buildtool.target.registry import board_names, load_board

    folder, model = Path(args.folder or "."), args.model or ""
    if model.lower().endswith(MODEL_SUFFIXES):
        model = str(Path(model).absolute())
    emulator = load_board(args.board).own_emulator if args.board else None
    subject = Subject(
        _seen_from(args.board or "", folder),
        _seen_from(args.model or "", folder),
        tuple(board_names()),
        identifier(net_name(model)) if model else "",
        (emulator.machine or emulator.kind) if emulator else None,
        (folder / "SConstruct").is_file(),
    )
    found = merged(folder, subject)
    written = sorted(
        name for place, files in places(folder, found.files).items() for name in write_changed(files, place)
    )
    lines = [f"added to {FOLDER}/{name}" for name in found.added]
    lines += [f"left as you have it: {FOLDER}/{name}" for name in found.kept]
    text = "\n".join(lines or [f"{folder / FOLDER}: nothing is missing"])
    return {"files": written, "added": found.added, "kept": found.kept}, text, 0


def _seen_from(named: str, folder: Path) -> str:
    """A board or model as a command line says it in `folder`, where the editor's tasks run."""
    from buildtool.options import MODEL_SUFFIXES

    if not named.lower().endswith((*MODEL_SUFFIXES, ".toml")):
        return named
    path = named if Path(named).is_absolute() else os.path.relpath(named, folder)
    return f"./{path}" if path.startswith("-") else path


def _below(folder: str, files: Mapping[str, bytes]) -> list[tuple[Path, bytes]]:
    """Files by the paths that they will have."""
    return [(Path(folder) / name, data) for name, data in files.items()]


COMMANDS: dict[str, Callable[[argparse.Namespace], Result]] = {
    command.__name__: command
    for command in (
        analyze,
        plan,
        front,
        report,
        build,
        emit,
        describe,
        sizes,
        validate,
        profile,
        debug,
        flash,
        ops,
        boards,
        target,
        zoo,
        split,
        arena,
        diff,
        watch,
        ide,
        daemon,
        cache,
    )
}
