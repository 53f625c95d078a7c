"""Commands that show the sizes of a firmware image and compare figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli.commands import FAIL_IF, MARKDOWN, Own, Result, ask, command, out_argument
from buildtool.options import spell_name

if TYPE_CHECKING:
    from buildtool.fronts.changes.compare import Floor, Limit
    from buildtool.fronts.changes.figures import Figures
    from buildtool.schema.builds import SizesAnswer


@command(
    "Shows what a linked firmware image takes of each memory; writes its files for flash.",
    positional=("elf",),
    own=(
        out_argument("DIR", "The folder for the files for flash and sizes.txt."),
        Own(
            ("--depth",),
            "Number of levels of the tree to show: memory, owner, library, file, symbol. "
            "(default: 3; with --out none)",
            "N",
        ),
        Own(("--diff",), "Shows what was added, removed or grew since an earlier firmware image.", "OLD.elf"),
        MARKDOWN,
        FAIL_IF,
    ),
    examples=(
        ("buildtool sizes out/wake.elf -b cortex-m4", "What it takes of each memory, and for what."),
        ("buildtool sizes new.elf -b cortex-m4 --diff old.elf --fail-if code+2%", "What grew."),
    ),
    begins="reading the firmware image",
)
def sizes(args: argparse.Namespace) -> Result:
    """Shows how many bytes of each memory a firmware image takes. With --out it writes the .bin files."""
    from buildtool.fronts.texts import builds as report

    depth = _depth(args)
    for name in ("markdown", "fail_if"):
        if getattr(args, name) and not args.diff:
            option = spell_name(name)
            raise UsageError(
                f"{option} needs --diff and an earlier firmware image", hint=f"leave {option} out"
            )
    answer: SizesAnswer = ask(args)
    files = {**answer["files"], "sizes.txt": (report.image_text(answer, 0) + "\n").encode()}
    written = write_files(files, Path(args.out)) if args.out else []
    if args.diff:
        return _sizes_since(args, answer, depth or report.DEPTH)
    shown = report.image_text(answer, depth or (0 if args.out else report.DEPTH))
    return {**answer, "files": written}, shown, 0


def _sizes_since(args: argparse.Namespace, answer: SizesAnswer, depth: int) -> Result:
    """Returns the sizes with what changed since an earlier firmware image.

    The map file of the earlier image may be beside it.
    """
    from buildtool.fronts.changes import figures

    unset = dict.fromkeys(("map", "formats", "sign", "image_version"))
    before: SizesAnswer = ask(argparse.Namespace(**{**vars(args), **unset, "elf": args.diff}))
    names = (args.diff, args.elf)
    old, new = (figures.of_answer(name, one) for name, one in zip(names, (before, answer), strict=True))
    return _compare(args, old, new, depth)


def _depth(args: argparse.Namespace) -> int:
    """Returns the number of levels that --depth gives, or 0 without the option."""
    if args.depth is None:
        return 0
    if not (args.depth.isascii() and args.depth.isdecimal() and 0 < len(args.depth) < 6 and int(args.depth)):
        raise UsageError(f"'{args.depth}' is not a whole number above 0", option="depth", hint="--depth 3")
    return int(args.depth)


@command(
    "Shows what changed between two answers saved as JSON, or two locked plans.",
    kind="",
    own=(
        Own(("before",), "An answer (--json) of plan, profile, validate, build or sizes, or a locked plan."),
        Own(("after",), "A later answer or plan."),
        MARKDOWN,
        FAIL_IF,
        Own(("--depth",), "Number of levels of the tree of sizes to show. (default: 3)", "N"),
    ),
    examples=(
        ("buildtool diff old.json new.json", "What grew, in total and by layer."),
        ("buildtool diff old.json new.json --markdown --fail-if ram+0,cost+2%", "In a pull request's check."),
    ),
)
def diff(args: argparse.Namespace) -> Result:
    """Shows what changed between two files. The exit status is 1 if a limit is exceeded."""
    from buildtool.fronts.changes import figures
    from buildtool.fronts.texts import builds as report

    depth = _depth(args) or report.DEPTH
    _read_limits(args)
    return _compare(args, figures.read(args.before), figures.read(args.after), depth)


def _read_limits(args: argparse.Namespace) -> list[Limit | Floor]:
    """Returns the limits of --fail-if. Raises UsageError for wrong options, before any file is read."""
    from buildtool.fronts.changes import compare

    if args.json and args.markdown:
        raise UsageError("--json and --markdown exclude each other", hint="leave one of them out")
    return (
        [compare.parse_limit(limit) for limit in args.fail_if.split(",")] if args.fail_if is not None else []
    )


def _compare(args: argparse.Namespace, before: Figures, after: Figures, depth: int) -> Result:
    """Compares two files' figures. The exit status is 1 if a limit is exceeded."""
    import dataclasses

    from buildtool.fronts.changes import compare
    from buildtool.fronts.texts import changes as report

    changes = compare.changes(before, after)
    exceeded = compare.exceeded_limits(_read_limits(args), changes.totals)
    write_text = report.markdown if args.markdown else report.text
    text = write_text(changes, exceeded, depth)
    answer = {name: [dataclasses.asdict(row) for row in getattr(changes, name)] for name in report.PARTS}
    return {**answer, "equal": changes.is_equal, "exceeded": exceeded}, text, 1 if exceeded else 0
