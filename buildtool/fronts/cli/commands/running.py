"""Commands that run a network in an emulator, on this machine, or on a board."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_inputs
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli import console
from buildtool.fronts.cli.commands import (
    Own,
    Result,
    ask,
    command,
    input_files,
    make_show_command,
    out_argument,
    paths_in,
)

if TYPE_CHECKING:
    from buildtool.schema.datasets import DatasetAnswer
    from buildtool.schema.runs import DebugAnswer, FlashAnswer, ValidationAnswer


@command(
    "Builds, runs, and compares with the reference; with a data set, also with its labels.",
    positional=("model",),
    own=(
        Own(
            ("--fail-if",),
            "Ends with status 1 where a figure of a data set is below its lower limit: top1<70%%, "
            "recall<50%%, precision<50%% (of every class). Commas separate several limits.",
            "LIMITS",
        ),
    ),
    examples=(
        ("buildtool validate wake.tflite -b cortex-m4 --inputs 3 --tensors", "Every layer, three inputs."),
        ("buildtool validate wake.tflite -b host --sanitize", "With address checks (sanitizers)."),
        (
            "buildtool validate wake.tflite -b host --data photos --fail-if 'top1<70%'",
            "Accuracy on folders of pictures, one for each class.",
        ),
    ),
    begins="planning",
    plans=True,
)
def validate(args: argparse.Namespace) -> Result:
    """Shows whether outputs are right. The exit status is 1 if one exceeds its bound or accuracy is too
    low.
    """
    from buildtool.fronts.changes import compare
    from buildtool.fronts.texts import validation

    if args.fail_if is not None and args.data is None:
        raise UsageError("it has no effect without a data set", option="fail_if", hint="leave it out")
    floors = [compare.parse_floor(one) for one in args.fail_if.split(",")] if args.fail_if is not None else []
    if args.data is not None:
        accuracy: DatasetAnswer = ask(args)
        missed = compare.missed_floors(floors, accuracy)
        failed = accuracy["within_bounds"] is False or missed
        text = validation.dataset_text(accuracy, missed)
        return {**accuracy, "exceeded": missed}, text, 1 if failed else 0
    answer: ValidationAnswer = ask(args)
    return answer, validation.text(answer), 0 if answer["within_bounds"] else 1


profile = make_show_command(
    "profile",
    "profile:text",
    "Builds, runs, and counts the instructions of every layer.",
    exact="within_bounds",
    positional=("model",),
    examples=(
        ("buildtool profile wake.tflite -b cortex-m55", "Instructions by layer."),
        (
            "buildtool profile wake.tflite -b cortex-m4 --elf out/wake.elf --plan out/wake.plan",
            "Of a firmware image that is built already.",
        ),
    ),
    begins="planning",
    plans=True,
)


@command(
    "Builds for a debugger, starts the server for it, and prints how to connect.",
    positional=("model",),
    own=(
        out_argument(
            "DIR", "The folder where the firmware reads its input and writes its output.", required=True
        ),
    ),
    examples=(
        (
            "buildtool debug wake.tflite -b cortex-m4 -o session",
            "Then run its line in another terminal.",
        ),
    ),
    begins="planning",
    plans=True,
)
def debug(args: argparse.Namespace) -> Result:
    """Writes the files of a debugging session, prints how to begin, and runs its server until it ends."""
    from buildtool.fronts.cli import debugger

    answer: DebugAnswer = ask(args)
    if not args.json:
        debugger.need_port(answer)  # before the files of a running session are overwritten
    debugger.write(answer, Path(args.out))
    if args.json:
        return {**answer, "files": sorted(answer["files"])}, "", 0
    console.write(debugger.text(answer, Path(args.out)))
    return {}, "", debugger.serve(answer, Path(args.out))


@command(
    "Builds test firmware that answers over a link (such as UART or RTT) and writes it to a board's flash.",
    positional=("model",),
    own=(
        out_argument(
            "DIR", "The folder for the firmware image, which other tools can use too.", required=True
        ),
    ),
    examples=(
        (
            "buildtool flash wake.tflite -b nucleo-f767zi -o out",
            "Then: buildtool profile wake.tflite -b nucleo-f767zi --on board --flashed",
        ),
    ),
    begins="planning",
    plans=True,
)
def flash(args: argparse.Namespace) -> Result:
    """Writes a firmware image to a folder and flashes it. With --json it only writes the image."""
    from buildtool.fronts.cli import debugger

    answer: FlashAnswer = ask(args)
    keep_inputs(paths_in(args.out, answer["files"]), input_files(args))
    written = write_files(answer["files"], Path(args.out))
    if args.json:
        return {**answer, "files": written}, "", 0
    console.write(debugger.flash_text(answer, Path(args.out)))
    return {}, "", debugger.flash(answer, Path(args.out))
