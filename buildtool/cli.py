"""The `buildtool` command: one subcommand, one function; each sends one request to the service."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from buildtool import __version__
from buildtool.errors import BuildtoolError, UsageError, did_you_mean

JSON_SCHEMA = 1  # of what --json prints

Answer = dict[str, Any]
Result = tuple[Answer, str, int]  # the answer, its text, the exit status


class _Parser(argparse.ArgumentParser):
    """argparse with our errors: one line in the one style, with suggestions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = action.dest.replace("_", "-")
            raise UsageError(
                f"unknown {what} '{value}'", hint=did_you_mean(str(value), map(str, action.choices))
            )


# ---- subcommands ---------------------------------------------------------------------------------


def analyze(args: argparse.Namespace) -> Result:
    """Tells whether a network fits, what binds and by how much, and what would help."""
    from buildtool.report import analysis, network

    answer = _ask("analyze", args, boards=args.board)
    report = analysis if "boards" in answer else network
    return answer, report.text(answer), 0


def plan(args: argparse.Namespace) -> Result:
    """Plans: which kernels, where in memory, how much work."""
    from buildtool.report import plan as report

    if args.emit:
        return _emit_plan(args)
    if args.board is None or args.out:
        what = "--out is for --emit" if args.board else "the following arguments are required: -b/--board"
        raise UsageError(what, hint="see 'buildtool plan --help'")
    answer = _ask("plan", args, board=args.board, compare=args.compare)
    return answer, report.text(answer, buffers=args.buffers), 0


def _emit_plan(args: argparse.Namespace) -> Result:
    """Writes a plan as others read it; a board has no part in it."""
    from buildtool.report import tflm

    if not args.out or args.board:
        what = "--emit needs --out FILE.tflite" if args.board is None else "--emit is for no board"
        raise UsageError(what, hint="see 'buildtool plan --help'")
    answer, out = _ask("tflm", args), Path(args.out)
    (data,) = answer.pop("files").values()
    written = _write({out.name: data}, out.parent)
    return answer | {"files": written}, tflm.text(answer, args.out), 0


def front(args: argparse.Namespace) -> Result:
    """Lists all plans that no other beats in memory and work."""
    from buildtool.report import front as report

    answer = _ask("front", args, board=args.board, peers=args.peers)
    return answer, report.text(answer), 0


def build(args: argparse.Namespace) -> Result:
    """Builds firmware: sources, weight image, .elf and .bin."""
    from buildtool.report import build as report

    answer = _ask("build", args, board=args.board, toolchain=args.toolchain)
    written = _write(answer.pop("files"), Path(args.out))
    return answer | {"files": written}, report.text(answer, args.out, written), 0


def sizes(args: argparse.Namespace) -> Result:
    """Tells what a linked image takes of each memory; writes its .bin files."""
    from buildtool.report import estimate
    from buildtool.report import sizes as report

    answer = _ask("sizes", args, board=args.board, elf=args.elf)
    files, text = answer.pop("files"), "\n".join([report.text(answer["sizes"]), *estimate.lines(answer)])
    if args.out:
        files["sizes.txt"] = (text + "\n").encode()
        answer["files"] = _write(files, Path(args.out))
    return answer, text, 0


def validate(args: argparse.Namespace) -> Result:
    """Builds, runs, and compares with the reference."""
    from buildtool.report import validation

    fields = _inputs(args) | _image(args) | {"tensors": args.tensors, "sanitize": args.sanitize}
    if args.reference is not None:
        fields["reference"] = args.reference
    answer = _ask("validate", args, board=args.board, toolchain=args.toolchain, **fields)
    return answer, validation.text(answer), 0 if answer["exact"] else 1


def profile(args: argparse.Namespace) -> Result:
    """Builds, runs, and counts instructions per layer."""
    from buildtool.report import profile as report

    fields = _inputs(args) | _image(args)
    answer = _ask("profile", args, board=args.board, toolchain=args.toolchain, **fields)
    return answer, report.text(answer), 0 if answer["exact"] else 1


def ops(args: argparse.Namespace) -> Result:
    """Lists the operators that are supported, or a model's."""
    from buildtool.report import lists

    answer = _ask("ops", args)
    return answer, lists.ops(answer), 0


def boards(args: argparse.Namespace) -> Result:
    """Lists the boards."""
    from buildtool.report import lists

    answer = _ask("boards", args)
    return answer, lists.boards(answer), 0


def zoo(args: argparse.Namespace) -> Result:
    """Lists the networks that can be made, or writes one as .tflite."""
    from buildtool.report import lists

    if args.out and not args.model:
        raise UsageError("--out needs the name of a network", hint="see 'buildtool zoo' for the names")
    answer = _ask("zoo", args)
    if not args.model:
        return answer, lists.zoo(answer), 0
    answer["files"] = _write(answer["files"], Path(args.out or "."))
    return answer, f"written: {', '.join(answer['files'])}", 0


def arena(args: argparse.Namespace) -> Result:
    """Places the buffers of an arena problem (.csv) as low as possible, or within a capacity."""
    from buildtool.report import arena as report

    fields = {name: value for name in ("capacity", "budget") if (value := getattr(args, name)) is not None}
    answer = _ask("arena", args, file=args.file, **fields)
    solved = list(answer.pop("files").values())
    if args.out and solved:
        out = Path(args.out)
        _write({out.name: solved[0]}, out.parent)
    return answer, report.text(answer), 0 if solved else 1


# ---- requests ------------------------------------------------------------------------------------


def _ask(kind: str, args: argparse.Namespace, **fields: Any) -> Answer:
    """The service's answer to a request made of the model, the planning options and `fields`."""
    from buildtool.service import handle

    request: dict[str, Any] = {"kind": kind, **fields}
    if getattr(args, "model", None):
        request["model"] = args.model
    names = (*_PLANNING, *_COUNTING)
    options = {name: getattr(args, name) for name in names if getattr(args, name, None) is not None}
    if options:
        request["options"] = options
    return handle(request)


def _inputs(args: argparse.Namespace) -> dict[str, Any]:
    if args.input is not None and (args.inputs is not None or args.seed is not None):
        raise UsageError("--input gives the values, --inputs and --seed ask for random ones", hint="drop one")
    if args.input is not None:
        return {"input": args.input}
    return {name: value for name in ("inputs", "seed") if (value := getattr(args, name)) is not None}


def _image(args: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in ("elf", "plan") if (value := getattr(args, name)) is not None}


def _write(files: dict[str, bytes], folder: Path) -> list[str]:
    """Writes files below `folder`, each one whole or not at all; their names."""
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(path.name + ".part")
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", path=str(path)) from None
    return sorted(files)


# ---- arguments -----------------------------------------------------------------------------------

_PLANNING = (
    *("strategy", "objective", "ram", "max_f", "max_cost", "max_flash"),
    *("in_place", "image", "segments", "order", "hand_off", "cmsis_nn"),
)
_COUNTING = ("weights", "operators", "batch", "size")  # of ONNX and Darknet files


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"'{text}' is no count", hint="a whole number from 1 on")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"'{text}' is no seed", hint="a whole number from 0 on")
    return int(text)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a .tflite or .onnx file, or a network of 'buildtool zoo'"
    )


def _add_planning(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("planning")
    group.add_argument(
        "--strategy",
        metavar="NAME",
        help="best (default), layerwise (one operator after the other), msf-cnn, xcore-strips",
    )
    group.add_argument(
        "--segments",
        metavar="LIST",
        help="of xcore-strips: operators of the file and strips, such as 0-6x20,7-14x10 (default: searched)",
    )
    group.add_argument(
        "--in-place",
        metavar="HOW",
        help="what may overwrite its dying input: rows (default), elementwise, none",
    )
    group.add_argument(
        "--image",
        metavar="HOW",
        help="overwritable (default): the input's memory is reused; resident: the input survives; stream: "
        "rows are delivered one by one, no whole image is ever in RAM",
    )
    group.add_argument(
        "--order",
        metavar="HOW",
        help="given (default): operators run as the file has them; best: as keeps the least alive",
    )
    group.add_argument("--objective", metavar="WHAT", help="the least of what: cost (default), ram")
    group.add_argument("--ram", metavar="BYTES", help="most of the arena: 65536, 64K (default: the board's)")
    group.add_argument("--max-f", metavar="F", help="most work over the network's own: 1.1 is a tenth more")
    group.add_argument("--max-cost", metavar="COST", help="most of the estimated cost")
    group.add_argument("--max-flash", metavar="BYTES", help="most of the weights (default: the board's)")
    group.add_argument(
        "--hand-off",
        metavar="PIXELS",
        help="the least that go between operators of a group (default: 1; more are tried too), or row",
    )


def _add_board(parser: argparse.ArgumentParser, required: bool = True) -> None:
    known = "a board of 'buildtool boards', or a .toml file"
    parser.add_argument("-b", "--board", metavar="BOARD", required=required, help=known)


def _add_emit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--emit",
        metavar="FORMAT",
        choices=("tflm",),
        help="tflm: the model with arena offsets for TensorFlow Lite Micro, instead of a plan for a board",
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="of --emit: the file to write")


def _add_report(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the report holds")
    what = "of a streamed plan, every operator's kernel and every buffer"
    group.add_argument("--buffers", action="store_true", help=what)
    what = "with what msf-cnn and xcore-strips reach on the same network"
    group.add_argument("--compare", action="store_true", help=what)


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--toolchain", metavar="NAME", default="", help="the compiler; default: the board's first"
    )
    parser.add_argument(
        "--cmsis-nn",
        metavar="PATH",
        help="Cortex-M: a checkout of CMSIS-NN, whose kernels are used where they give the reference's bytes",
    )


def _add_image(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("an image of a build (default: plans and builds one)")
    group.add_argument("--elf", metavar="FILE", help="run this linked image, which has to be the model's")
    group.add_argument("--plan", metavar="FILE", help="the plan it was built from: the emitted NAME.plan")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument("--input", metavar="FILE.npy", help="one input: quantised values, or floats")
    group.add_argument("--inputs", metavar="N", type=_count, help="number of random inputs")
    group.add_argument("--seed", metavar="S", type=_seed, help="of the random inputs")


def _parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The whole command line, and the parser of each subcommand."""
    parser = _Parser(prog="buildtool", description="Trained int8 networks into microcontroller firmware.")
    parser.add_argument("--version", action="version", version=f"buildtool {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for function in (analyze, plan, front, build, sizes, validate, profile, ops, boards, zoo, arena):
        summary = (function.__doc__ or "").strip()
        sub = commands.add_parser(function.__name__, help=summary, description=summary, allow_abbrev=False)
        sub.set_defaults(function=function)
        if function in (plan, front, build, validate, profile):
            _add_model(sub)
            _add_board(sub, required=function is not plan)
        if function is plan:
            _add_emit(sub)
            _add_report(sub)
        if function is front:
            sub.add_argument("--peers", action="store_true", help="with msf-cnn and xcore-strips beside it")
        if function in (build, validate, profile):
            _add_build(sub)
        if function in (validate, profile):
            _add_image(sub)
            _add_inputs(sub)
        if function is analyze:
            _add_analyze(sub)
        if function is build:
            sub.add_argument("-o", "--out", metavar="DIR", required=True, help="folder for the files")
        if function is sizes:
            _add_sizes(sub)
        if function is zoo:
            sub.add_argument("model", metavar="NETWORK", nargs="?", help="writes this one: ds_cnn:seed=1")
            sub.add_argument("-o", "--out", metavar="DIR", help="folder for the file (default: this one)")
        if function is validate:
            _add_validate(sub)
        if function is arena:
            _add_arena(sub)
        if function in (analyze, plan, front, build, validate, profile):
            _add_planning(sub)
        sub.add_argument("--json", action="store_true", help="print the answer as JSON, and nothing else")
    return parser, commands.choices


def _add_analyze(parser: argparse.ArgumentParser) -> None:
    what = (
        "a .tflite file, or a network of 'buildtool zoo'; to count memory: a .onnx (no --board) or .cfg file"
    )
    parser.add_argument("model", metavar="MODEL", help=what)
    parser.add_argument(
        "-b",
        "--board",
        metavar="BOARD",
        action="append",
        default=[],
        help="a board; may be given several times (default: every board)",
    )
    _add_counting(parser)


def _add_counting(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("ONNX and Darknet files (.onnx, .cfg), beside --order")
    group.add_argument("--batch", metavar="N", type=_count, help="images at a time (default: the file's; 1)")
    group.add_argument("--size", metavar="HxW", help="rows and columns of the image (default: the file's)")
    group.add_argument(
        "--weights",
        metavar="HOW",
        help="flash (default): not counted; load: in memory from their first to their last reader",
    )
    group.add_argument(
        "--operators",
        metavar="HOW",
        help="separate (default), or fused: batch normalisation and activation part of what is before them",
    )


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("elf", metavar="ELF", help="a linked image")
    _add_board(parser)
    parser.add_argument("-o", "--out", metavar="DIR", help="folder for the .bin files and sizes.txt")


def _add_validate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tensors", action="store_true", help="compare every tensor, not the outputs alone")
    parser.add_argument("--reference", metavar="NAME", help="numpy (default), or litert")
    parser.add_argument(
        "--sanitize", action="store_true", help="with address and undefined-behaviour checks (host)"
    )


def _add_arena(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.csv", help="columns id, lower, upper, size; alignment, offset")
    parser.add_argument("--capacity", metavar="N", type=_count, help="any placement within N bytes will do")
    parser.add_argument("--budget", metavar="NODES", type=_count, help="how many nodes to search at most")
    parser.add_argument("-o", "--out", metavar="FILE", help="the table again, with offsets")


# ---- the command ---------------------------------------------------------------------------------


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Arguments; UsageError with a suggestion for an unknown option."""
    parser, commands = _parser()
    sub = commands.get(argv[0]) if argv else None
    for word in argv[1:]:
        name = word.partition("=")[0]
        # Before argparse looks: it would rather complain of what is missing than of what is misspelt.
        if sub and name.startswith("--") and name not in sub._option_string_actions:
            raise UsageError(f"unknown option '{name}'", hint=did_you_mean(name, sub._option_string_actions))
    return parser.parse_args(argv)


def _plain(value: object) -> object:
    """For JSON: files and other bytes become their length."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if not isinstance(item, bytes)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def run(argv: Sequence[str]) -> int:
    """Runs one command line; the exit status: 0, 1 for an error, 2 for a usage error."""
    try:
        args = _parse(argv)
        result: Result = args.function(args)
        answer, text, status = result
        print(json.dumps(_plain(answer), indent=2, sort_keys=True) if args.json else text, flush=True)
        return status
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except BuildtoolError as error:
        print(error, file=sys.stderr)
        return 1


def main() -> NoReturn:
    """The console script."""
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Who read our output has enough; the interpreter must not flush into the pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    sys.exit(status)


if __name__ == "__main__":
    main()
