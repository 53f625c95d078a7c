"""Commands that write a build's files."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import (
    depfile,
    keep_inputs,
    keep_networks,
    remove_stamp,
    write_changed,
    write_stamp,
)
from buildtool.client.planned import emitted_lines
from buildtool.fronts.cli.commands import Own, Result, ask, command, input_files, out_argument, paths_in
from buildtool.fronts.firmware import write_firmware
from buildtool.options import BY_NAME

if TYPE_CHECKING:
    from buildtool.schema.builds import BuildAnswer, BundleAnswer, DescribeAnswer, EmitAnswer


@command(
    "Builds firmware: sources, weight image, .elf and files for flash.",
    positional=("model",),
    own=(
        out_argument("DIR", "The folder for the files.", required=True),
        Own(
            (BY_NAME["system"].flagged,),
            "Writes, in place of firmware, a folder that compiles without buildtool: sources, the kernels "
            "that they use, weight image, build files. Networks in one folder share their kernels. "
            + BY_NAME["system"].help,
            "SYSTEM",
            choices=BY_NAME["system"].values,
            bare="plain",
        ),
    ),
    examples=(
        ("buildtool build wake.tflite -b cortex-m4 -o out", "Sources, .elf, .map and .bin in out/."),
        ("buildtool build wake.tflite -b cortex-m4 -o out --debug", "The same, compiled for a debugger."),
        ("buildtool build wake.tflite -b host -o modules/nn --bundle=riot", "A module of RIOT, any core."),
    ),
    begins="planning",
    plans=True,
)
def build(args: argparse.Namespace) -> Result:
    """Writes firmware to a folder, or with --bundle a folder for other build systems."""
    from buildtool.fronts.texts import builds

    if args.bundle:
        return _bundle(args)
    answer: BuildAnswer = ask(args)
    written, removed = write_firmware(answer["files"], Path(args.out), input_files(args))
    text = builds.build_text(answer, args.out, written, removed)
    return {**answer, "files": written, "removed": removed}, text, 0


def _bundle(args: argparse.Namespace) -> Result:
    """Writes a network to a folder that any build system can compile."""
    from buildtool.fronts.bundles.folder import put
    from buildtool.fronts.texts import builds

    answer: BundleAnswer = ask(args, "bundle", system=args.bundle)
    changed, removed = put(answer, Path(args.out))
    names = {"files": answer["network"]["files"], "changed": changed, "removed": removed}
    return {**answer, **names}, builds.bundle_text(answer, args.out, changed, removed), 0


@command(
    "Writes a network's sources and weight image, for a build system that compiles them.",
    positional=("model",),
    own=(
        out_argument("DIR", "The folder for the files. Unchanged files keep their times.", required=True),
        Own(
            ("--stamp",),
            "A file that is always written last: the output of a build system's rule.",
            "FILE",
        ),
        Own(
            ("--depfile",),
            "A file for the dependencies of the stamp, as Make, Ninja and CMake read it.",
            "FILE",
        ),
    ),
    examples=(
        (
            "buildtool emit wake.tflite -b cortex-m4 -o gen --stamp gen/s --depfile gen/s.d",
            "For a rule of a build system.",
        ),
    ),
    begins="planning",
    plans=True,
)
def emit(args: argparse.Namespace) -> Result:
    """Writes a network's changed sources, with a stamp and a depfile for a build system."""
    from buildtool.base.code_digest import code_files

    if args.depfile and not args.stamp:
        raise UsageError("--depfile needs --stamp, its target", hint="see 'buildtool emit --help'")
    start = time.time_ns()
    answer: EmitAnswer = ask(args)
    rules = [(Path(name), None) for name in (args.stamp, args.depfile) if name]
    keep_inputs([*paths_in(args.out, answer["files"]), *rules], answer["depends"])
    keep_networks(answer["files"], Path(args.out))
    rule = None
    if args.depfile:
        rule = args.depfile, depfile(args.stamp, [*answer["depends"], *code_files()])
    if args.stamp:
        remove_stamp(args.stamp)
    lines = emitted_lines(answer, Path(args.out))
    changed = write_changed(answer["files"], Path(args.out))
    if args.stamp:
        write_stamp(args.stamp, rule, start)
    names = sorted(answer["files"])
    return {**answer, "files": names, "changed": changed}, lines, 0


@command(
    "Tells a build system what to compile, the flags, and the dependencies.",
    positional=("model",),
    optional=("model",),
    own=(out_argument("DIR", "The folder for the board's linker script."),),
    examples=(("buildtool describe -b cortex-m4 --json", "Flags, sources and dependencies."),),
    begins="describing the build",
)
def describe(args: argparse.Namespace) -> Result:
    """Prints the description of the build for a build system. With --out it writes the linker script."""
    from buildtool.fronts.texts import builds

    answer: DescribeAnswer = ask(args)
    script = answer["script"]
    files = {script["name"]: script["data"]} if args.out and script else {}
    written = write_changed(files, Path(args.out)) if files else []
    return {**answer, "files": written}, builds.description_text(answer), 0
