"""The command that quantises a float network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.fronts.cli.commands import Result, ask, command, input_files, out_argument, write_file
from buildtool.fronts.firmware import check_quantized

if TYPE_CHECKING:
    from buildtool.schema.quantized import QuantizeAnswer


@command(
    "Quantises a float network to int8 with your data, compares both, and plans the result.",
    positional=("model",),
    optional=("board",),
    own=(out_argument("FILE", "The file for the quantised network, of the same kind.", required=True),),
    examples=(
        (
            "buildtool quantize wake_float.tflite --data recordings.npz -o wake.tflite -b cortex-m4",
            "Then: buildtool build wake.tflite -b cortex-m4 -o out",
        ),
        (
            "buildtool quantize wake_float.tflite --data photos --normalise unit -o wake.tflite",
            "Folders of pictures, one for each class, with values from 0 to 1.",
        ),
        (
            "buildtool quantize wake_float.tflite --sizes-only -o sizes.tflite -b cortex-m4",
            "Would it fit? Without data; the outputs are meaningless.",
        ),
    ),
    begins="reading the network",
)
def quantize(args: argparse.Namespace) -> Result:
    """Writes the quantised network. The exit status is 1 if it does not fit the board."""
    from buildtool.fronts.texts import quantized as report

    out = Path(args.out)
    check_quantized(out, args.model, input_files(args))
    answer: QuantizeAnswer = ask(args)
    (data,) = answer["files"].values()
    written = write_file(args, args.out, data)
    text = f"{report.text(answer)}\n\nwritten: {args.out}"
    fails = answer["planned"] is not None and answer["planned"]["error"] is not None
    return {**answer, "files": written}, text, 1 if fails else 0
