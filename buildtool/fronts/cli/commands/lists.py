"""Commands that list operators, boards, kernels of a plugin, networks by name and examples."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli import console
from buildtool.fronts.cli.commands import Own, Result, ask, command, make_show_command, out_argument

if TYPE_CHECKING:
    from buildtool.schema.boards import BoardsAnswer, CheckAnswer, ZooAnswer, ZooFile


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


@command(
    "Lists the boards, or writes a board file to start from.",
    own=(
        Own(("action",), "new: write a file for a board of your own.", choices=("new",), optional=True),
        Own(
            ("--from",),
            "A vendor's file about the chip: a CMSIS-SVD (.svd), a pack's description (.pdsc), a device tree "
            "(.dts, .dtsi) or a linker script (.ld). Several files complete each other.",
            "FILE",
            many=True,
        ),
        Own(("--chip",), "The chip, in a pack with several.", "NAME"),
        Own(("--core",), "The core, where the files do not name it.", "NAME"),
        Own(("--flash",), "The memory for code, in place of those of the files.", "ADDRESS:SIZE"),
        Own(("--ram",), "The memory for data and the arena, in place of those of the files.", "ADDRESS:SIZE"),
        out_argument("FILE", "The file to write (default: CHIP.toml here); it must be new."),
    ),
    examples=(
        ("buildtool boards", "Names, cores and memories."),
        (
            "buildtool boards new --from chip.svd --from chip.ld",
            "A file for a chip that is not known.",
        ),
    ),
    multiplies=False,
)
def boards(args: argparse.Namespace) -> Result:
    """Lists the boards, or writes a board file."""
    from buildtool.fronts.texts import boards as report

    only_new = ("from", "chip", "core", "flash", "ram", "out")
    given = [f"--{name}" for name in only_new if getattr(args, name) is not None]
    if args.action is None:
        if given:
            raise UsageError(
                f"{given[0]} is of 'buildtool boards new'", hint=f"buildtool boards new {given[0]} ..."
            )
        answer: BoardsAnswer = ask(args)
        return answer, report.boards(answer), 0
    return _write_board(args)


def _write_board(args: argparse.Namespace) -> Result:
    from buildtool.target.chipfiles import newboard, reading
    from buildtool.target.hardware import MemoryKind

    sources = [Path(name) for name in getattr(args, "from") or ()]
    pairs = ((args.flash, MemoryKind.ROM), (args.ram, MemoryKind.RAM))
    memories = [reading.given_memory(text, kind) for text, kind in pairs if text]
    if not sources and len(memories) < len(pairs):
        hint = "--from FILE, or --core NAME --flash ADDRESS:SIZE --ram ADDRESS:SIZE"
        raise UsageError("nothing is known about the chip", hint=hint)
    if args.chip and not any(source.suffix.lower() == ".pdsc" for source in sources):
        raise UsageError("it selects a chip of a pack", option="chip", hint="--from NAME.pdsc")
    facts = reading.merged_facts(sources, args.chip or "", memories)
    names = [source.name for source in sources] or ["the command line"]
    text = newboard.new_board(facts, names, args.core or "")
    path = Path(args.out or f"{newboard.board_name(facts, sources or [Path('board')])}.toml")
    if path.suffix != ".toml":
        raise UsageError(f"a board file ends in .toml, not '{path.suffix}'", option="out")
    if os.path.lexists(path):
        raise UsageError("the file exists", path=str(path), hint="another name: --out FILE")
    write_files({path.name: text.encode()}, path.parent)
    lines = f"written: {path}\ngo on with: buildtool plan MODEL --board {shlex.quote(str(path))}"
    return {"files": [str(path)], "board": text}, lines, 0


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
    """Checks the kernels of a plugin. The exit status is 1 if a kernel fails."""
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


@command(
    "Lists the examples, projects that use buildtool, or writes one to a new folder.",
    kind="",
    own=(
        Own(("example",), "The example's name.", "NAME", optional=True),
        Own(("folder",), "The folder for its files, which must be new or empty.", "DIR", optional=True),
    ),
    examples=(
        ("buildtool example", "The names, and what each example is about."),
        ("buildtool example cmake firmware", "Writes the CMake project to the folder firmware."),
    ),
)
def example(args: argparse.Namespace) -> Result:
    """Lists the examples, or writes one."""
    from buildtool.fronts import examples
    from buildtool.fronts.texts.table import table

    if args.example is None:
        rows = [{"name": one.name, "about": one.about} for one in examples.examples().values()]
        return {"examples": rows}, table(["example", "about"], [list(row.values()) for row in rows]), 0
    if args.folder is None:
        hint = f"for example: buildtool example {args.example} firmware"
        raise UsageError("the folder for the example's files is missing", hint=hint)
    one = examples.write_example(args.example, Path(args.folder))
    commands = [f"cd {shlex.quote(args.folder)}", *one.run]
    if args.json:
        return {"files": sorted(one.files), "run": commands}, "", 0
    console.write_text(f"written: {', '.join(sorted(one.files))}\ngo on with:")
    console.write("\n".join(f"  {line}" for line in commands))  # not folded: the lines are copied
    return {}, "", 0
