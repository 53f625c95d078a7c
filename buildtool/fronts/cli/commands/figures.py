"""What an image takes, and what changed: commands that compare figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli.commands import FAIL_IF, MARKDOWN, Own, Result, ask, command, out
from buildtool.options import spell_name

if TYPE_CHECKING:
    from buildtool.fronts.changes.compare import Floor, Limit
    from buildtool.fronts.changes.figures import Figures
    from buildtool.schema.builds import SizesAnswer


@command(
    "Tells what a linked image takes of each memory; writes its files for flash.",
    positional=("elf",),
    own=(
        out("DIR", "The folder for the files for flash and sizes.txt."),
        Own(
            ("--depth",),
            "Levels of the tree that are shown: memory, who brought it, library, file, symbol. "
            "(default: 3; with --out none)",
            "N",
        ),
        Own(("--diff",), "Shows what grew since an earlier image, what came and what went.", "OLD.elf"),
        MARKDOWN,
        FAIL_IF,
    ),
    examples=(
        ("buildtool sizes out/wake.elf -b cortex-m4", "What it takes of each memory, and what that is."),
        ("buildtool sizes new.elf -b cortex-m4 --diff old.elf --fail-if code+2%", "What grew."),
    ),
    begins="reading the image",
)
def sizes(args: argparse.Namespace) -> Result:
    """The memories that an image takes; with --out its .bin files are written."""
    from buildtool.fronts.texts import boards
    from buildtool.fronts.texts import builds as report

    depth = _depth(args)
    for name in ("markdown", "fail_if"):
        if getattr(args, name) and not args.diff:
            option = spell_name(name)
            raise UsageError(f"{option} needs --diff, the image to compare with", hint=f"leave {option} out")
    answer: SizesAnswer = ask(args)
    level = f"level: {answer['level_text']}"
    table = report.sizes_text(answer["sizes"], answer["stacks"])
    text = "\n".join([table, level, *boards.note_lines(answer["note"])])
    files = {**answer["files"], "sizes.txt": (text + "\n").encode()}
    written = write_files(files, Path(args.out)) if args.out else []
    if args.diff:
        return _sizes_since(args, answer, depth or report.DEPTH)
    if depth or not args.out:
        text += "\n\n" + report.tree(answer["parts"], answer["files_from"], depth or report.DEPTH)
    return {**answer, "files": written}, text, 0


def _sizes_since(args: argparse.Namespace, answer: SizesAnswer, depth: int) -> Result:
    """What changed since an earlier image, whose map lies beside it."""
    from buildtool.fronts.changes import figures

    unset = dict.fromkeys(("map", "formats", "sign", "image_version"))
    before: SizesAnswer = ask(argparse.Namespace(**{**vars(args), **unset, "elf": args.diff}))
    names = (args.diff, args.elf)
    found = [figures.of_answer(name, one) for name, one in zip(names, (before, answer), strict=True)]
    return _compare(args, found[0], found[1], depth)


def _depth(args: argparse.Namespace) -> int:
    """The levels of --depth; 0 without the option."""
    if args.depth is None:
        return 0
    if not (args.depth.isascii() and args.depth.isdecimal() and 0 < len(args.depth) < 6 and int(args.depth)):
        raise UsageError(f"'{args.depth}' is not a whole number above 0", option="depth", hint="--depth 3")
    return int(args.depth)


@command(
    "Tells what changed between two answers that were kept as JSON, or two locked plans.",
    kind="",
    own=(
        Own(("before",), "An answer (--json) of plan, profile, validate, build or sizes, or a plan."),
        Own(("after",), "A later one."),
        MARKDOWN,
        FAIL_IF,
        Own(("--depth",), "Levels of the tree of sizes that are shown. (default: 3)", "N"),
    ),
    examples=(
        ("buildtool diff old.json new.json", "What grew, in all and by layer."),
        ("buildtool diff old.json new.json --markdown --fail-if ram+0,cost+2%", "In a pull request's check."),
    ),
)
def diff(args: argparse.Namespace) -> Result:
    """What changed between two files; the exit status is 1 where a limit is exceeded."""
    from buildtool.fronts.changes import figures
    from buildtool.fronts.texts import builds as report

    depth = _depth(args) or report.DEPTH
    _compare_arguments(args)
    return _compare(args, figures.read(args.before), figures.read(args.after), depth)


def _compare_arguments(args: argparse.Namespace) -> list[Limit | Floor]:
    """The limits that are given, before anything is read; UsageError for what cannot be."""
    from buildtool.fronts.changes import compare

    if args.json and args.markdown:
        raise UsageError("--json and --markdown exclude each other", hint="leave one of them out")
    return (
        [compare.parse_limit(limit) for limit in args.fail_if.split(",")] if args.fail_if is not None else []
    )


def _compare(args: argparse.Namespace, before: Figures, after: Figures, depth: int) -> Result:
    """What differs between two files' figures; the exit status is 1 where a limit is exceeded."""
    import dataclasses

    from buildtool.fronts.changes import compare
    from buildtool.fronts.texts import changes as report

    found = compare.changes(before, after)
    beyond = compare.exceeded_limits(_compare_arguments(args), found.totals)
    shown = report.markdown if args.markdown else report.text
    text = shown(found, beyond, depth)
    said = {name: [dataclasses.asdict(row) for row in getattr(found, name)] for name in report.PARTS}
    return {**said, "equal": found.is_equal, "exceeded": beyond}, text, 1 if beyond else 0
