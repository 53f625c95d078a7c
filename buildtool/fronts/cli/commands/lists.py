"""Commands that list operators, boards, kernels of a plugin and networks by name."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli.commands import Own, Result, ask, command, make_show_command, out_argument

if TYPE_CHECKING:
    from buildtool.schema.boards import CheckAnswer, ZooAnswer, ZooFile


ops = make_show_command(
    "ops",
    "boards:ops",
    "Lists TFLite's operators by data type (read, or refused and why) and their kernels on every board; for "
    "a network, only its operators.",
    positional=("model",),
    optional=("model",),
    examples=(
        ("buildtool ops", "Which of TFLite's operators are read, by data type."),
        ("buildtool ops wake.tflite", "Which kernels run this network's operators."),
    ),
    begins="reading the network",
    multiplies=False,
)
boards = make_show_command(
    "boards",
    "boards:boards",
    "Lists the boards.",
    examples=(("buildtool boards", "Names, cores and memories."),),
    multiplies=False,
)


@command(
    "Checks the kernels of a target plugin: compiles and runs random operators, compares with the reference.",
    positional=("plugin",),
    own=(
        Own(("action",), "What to do.", choices=("check",)),
        out_argument("DIR", "The folder for the networks on which a kernel fails."),
    ),
    examples=(
        (
            "buildtool target check acme",
            "The kernels of the plugin acme, on each of its boards that runs here.",
        ),
        (
            "buildtool target check acme -b acme-demo --cases 50 -o failed",
            "More networks; keeps those that fail.",
        ),
    ),
    begins="checking kernels",
)
def target(args: argparse.Namespace) -> Result:
    """Checks the kernels of a plugin. The exit status is 1 where one fails."""
    from buildtool.fronts.texts import boards as report

    answer: CheckAnswer = ask(args)
    failed = {row["failed"]["name"]: row["failed"]["model"] for row in answer["kernels"] if row["failed"]}
    written = write_files(failed, Path(args.out)) if args.out and failed else []
    return (
        {**answer, "files": written},
        report.check_text(answer, args.out or ""),
        0 if answer["exact"] else 1,
    )


@command(
    "Lists the networks that can be made, or writes one as .tflite.",
    positional=("model",),
    optional=("model",),
    own=(out_argument("DIR", "The folder for the file (default: this one)."),),
    examples=(("buildtool zoo ds_cnn -o models", "Writes models/ds_cnn.tflite."),),
    begins="making the network",
)
def zoo(args: argparse.Namespace) -> Result:
    """Lists the networks by name, or writes one to a file."""
    from buildtool.fronts.texts import boards as lists

    if args.out and not args.model:
        raise UsageError("--out needs the name of a network", hint="see 'buildtool zoo' for the names")
    answer: ZooAnswer | ZooFile = ask(args)
    if "networks" in answer:
        return answer, lists.zoo(answer), 0
    written = write_files(answer["files"], Path(args.out or "."))
    return {**answer, "files": written}, f"written: {', '.join(written)}", 0
