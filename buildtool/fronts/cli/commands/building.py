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
    outdated_files,
    remove_stamp,
    write_changed,
    write_stamp,
)
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli.commands import Own, Result, ask, below, command, inputs, out

if TYPE_CHECKING:
    from buildtool.schema.builds import BuildAnswer, BundleAnswer, DescribeAnswer, EmitAnswer


@command(
    "Builds firmware: sources, weight image, .elf and files for flash.",
    positional=("model",),
    own=(
        out("DIR", "The folder for the files.", required=True),
        Own(
            ("--bundle",),
            "Writes a folder that any build system compiles with any compiler, in place of firmware: "
            "sources, the kernels that they use, weight image, CMakeLists.txt, sources.mk. Networks that "
            "are written to one folder share their kernels.",
        ),
    ),
    examples=(
        ("buildtool build wake.tflite -b cortex-m4 -o out", "Sources, .elf, .map and .bin in out/."),
        ("buildtool build wake.tflite -b cortex-m4 -o out --debug", "The same for a debugger."),
    ),
    begins="planning",
    plans=True,
)
def build(args: argparse.Namespace) -> Result:
    """Firmware, written to a folder; with --bundle what other build systems compile."""
    from buildtool.fronts.texts import builds

    if args.bundle:
        return _bundle(args)
    answer: BuildAnswer = ask(args)
    keep_inputs(below(args.out, answer["files"]), inputs(args))
    keep_networks(answer["files"], Path(args.out))
    removed = outdated_files(answer["files"], Path(args.out))
    written = write_files(answer["files"], Path(args.out))
    for name in removed:
        (Path(args.out) / name).unlink(missing_ok=True)
    text = builds.build_text(answer, args.out, written)
    text += f"\nremoved, of an earlier build: {', '.join(removed)}" if removed else ""
    return {**answer, "files": written, "removed": removed}, text, 0


def _bundle(args: argparse.Namespace) -> Result:
    """Puts a network into a folder that any build system compiles."""
    from buildtool.fronts.bundles.folder import put
    from buildtool.fronts.texts import builds

    answer: BundleAnswer = ask(args, "bundle")
    changed, removed = put(answer, Path(args.out))
    named = {"files": answer["network"]["files"], "changed": changed, "removed": removed}
    return {**answer, **named}, builds.bundle_text(answer, args.out, changed, removed), 0


@command(
    "Writes a network's sources and weight image, for a build system that compiles them.",
    positional=("model",),
    own=(
        out("DIR", "The folder for the files; those that have not changed stay as they are.", required=True),
        Own(
            ("--stamp",),
            "A file that is written last, always: the output of a build system's rule.",
            "FILE",
        ),
        Own(("--depfile",), "What the stamp depends on, as Make, Ninja and CMake read it.", "FILE"),
    ),
    examples=(
        ("buildtool emit wake.tflite -b cortex-m4 -o gen --stamp gen/s --depfile gen/s.d", "A build's rule."),
    ),
    begins="planning",
    plans=True,
)
def emit(args: argparse.Namespace) -> Result:
    """The sources of a network, written where they changed; with a stamp and a depfile for a build system."""
    from buildtool.base.identity import code_files

    if args.depfile and not args.stamp:
        raise UsageError("--depfile needs --stamp, its target", hint="see 'buildtool emit --help'")
    began = time.time_ns()
    answer: EmitAnswer = ask(args)
    rules = [(Path(name), None) for name in (args.stamp, args.depfile) if name]
    keep_inputs([*below(args.out, answer["files"]), *rules], answer["depends"])
    keep_networks(answer["files"], Path(args.out))
    rule = None
    if args.depfile:
        rule = args.depfile, depfile(args.stamp, [*answer["depends"], *code_files()])
    if args.stamp:
        remove_stamp(args.stamp)
    changed = write_changed(answer["files"], Path(args.out))
    if args.stamp:
        write_stamp(args.stamp, rule, began)
    named = sorted(answer["files"])
    text = f"{args.out}: written: {', '.join(changed)}" if changed else f"{args.out}: nothing changed"
    return {**answer, "files": named, "changed": changed}, text, 0


@command(
    "Tells a build system what to compile, with which flags, and what it depends on.",
    positional=("model",),
    optional=("model",),
    own=(out("DIR", "The folder for the board's linker script."),),
    examples=(("buildtool describe -b cortex-m4 --json", "Flags, sources and dependencies."),),
    begins="describing the build",
)
def describe(args: argparse.Namespace) -> Result:
    """What a build system has to know; with --out the linker script is written."""
    from buildtool.fronts.texts import builds

    answer: DescribeAnswer = ask(args)
    script = answer["script"]
    files = {script["name"]: script["data"]} if args.out and script else {}
    written = write_changed(files, Path(args.out)) if files else []
    return {**answer, "files": written}, builds.description_text(answer), 0
