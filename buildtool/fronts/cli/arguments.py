"""The command line's arguments, made from the table of options."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.options.table import BY_NAME, from_text
from buildtool.options.types import NESTED, Group, Option

_TITLES = {
    Group.PLANNING: "planning",
    Group.COUNTING: "ONNX and Darknet files without a board",
    Group.TARGET: "target",
    Group.INPUT: "input",
    Group.BUILT: "made earlier",
    Group.DESK: "a board on the desk",
    Group.REPORT: "report",
    Group.SPLIT: "splitting and training",
    Group.OTHER: "problem",
}


class Own(NamedTuple):
    """An argument of a command alone: it changes no request."""

    names: tuple[str, ...]
    sentence: str
    metavar: str = ""  # "": it takes no value
    required: bool = False
    choices: tuple[str, ...] | None = None
    many: bool = False  # of an argument without dashes: any number of words


class Command(NamedTuple):
    """A subcommand: the kind of its request, and which of its options are positional.

    `optional`: options that the request needs and the command line may leave out.
    """

    name: str
    kind: str  # "": it makes no request
    summary: str
    positional: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    own: tuple[Own, ...] = ()


_JSON = Own(("--json",), "Prints the answer as JSON, and nothing else.")
_SARIF = Own(
    ("--sarif",), "Also writes what is wrong to FILE, in SARIF 2.1.0 as CI services read it.", "FILE"
)
_DAEMON = Own(
    ("--daemon",),
    "Who plans: the daemon (auto: started where none runs; require: or an error), or this process (off). "
    "(default: $BUILDTOOL_DAEMON, else auto; off where $CI is set)",
    "MODE",
    choices=("auto", "off", "require"),
)
_MARKDOWN = Own(("--markdown",), "Prints what changed as tables of Markdown, as pull requests show them.")
_FAIL_IF = Own(
    ("--fail-if",),
    "Ends with status 1 where a figure grew by more: ram+2%%, weights+4K, memory.flash+0; or is below what "
    "it must reach: top1<70%%; commas between several.",
    "LIMITS",
)
_NO_CACHE = Own(("--no-cache",), "Plans anew, and keeps nothing of it.")
_RECACHE = Own(("--recache",), "Plans anew, and keeps that instead of what was kept.")
_HASH_INPUTS = Own(
    ("--hash-inputs",),
    "Reads every file that has a part in the answer, whatever its times say; asks no daemon. For releases.",
)
_KEEPING = (
    "analyze",
    "plan",
    "front",
    "report",
    "build",
    "emit",
    "validate",
    "profile",
    "debug",
    "flash",
    "watch",
)  # commands that plan


def _out(metavar: str, sentence: str, required: bool = False) -> Own:
    return Own(("-o", "--out"), sentence, metavar, required)


COMMANDS = (
    Command(
        "analyze",
        "analyze",
        "Tells whether a network fits, what binds and by how much, and what would help.",
        ("model",),
    ),
    Command(
        "plan",
        "plan",
        "Plans: which kernels, where in memory, how much work.",
        ("model",),
        optional=("board",),
        own=(
            Own(
                ("--emit",),
                "Writes the model with arena offsets for TensorFlow Lite Micro (tflm) instead of a plan for "
                "a board.",
                "FORMAT",
                choices=("tflm",),
            ),
            _out("FILE", "The file for the plan, to build by it later (--plan); with --emit, for the model."),
            Own(
                ("--trace",),
                "Also writes the plan over time to FILE, as Perfetto and chrome://tracing open it.",
                "FILE",
            ),
            Own(("--buffers",), "Shows every operator's kernel and every buffer of a streamed plan."),
        ),
    ),
    Command("front", "front", "Lists all plans that no other beats in memory and work.", ("model",)),
    Command(
        "report",
        "report",
        "Draws a plan: one HTML file with the arena over time, the front, the network, layers and memories.",
        ("model",),
        own=(
            _out("FILE.html", "The file to write (default: report.html; with --json none)."),
            Own(("--profile",), "Also runs the network, and shows the instructions of every layer."),
            Own(
                ("--profiled",),
                "Shows those of an earlier run: what `buildtool profile --json` printed.",
                "FILE.json",
            ),
            Own(
                ("--against",),
                "Shows what differs from an earlier report, or from an answer that was kept as JSON.",
                "FILE",
            ),
        ),
    ),
    Command(
        "build",
        "build",
        "Builds firmware: sources, weight image, .elf and files for flash.",
        ("model",),
        own=(
            _out("DIR", "The folder for the files.", required=True),
            Own(
                ("--bundle",),
                "Writes a folder that any build system compiles with any compiler, in place of firmware: "
                "sources, the kernels that they use, weight image, CMakeLists.txt, sources.mk. Networks that "
                "are written to one folder share their kernels.",
            ),
        ),
    ),
    Command(
        "emit",
        "emit",
        "Writes a network's sources and weight image, for a build system that compiles them.",
        ("model",),
        own=(
            _out(
                "DIR",
                "The folder for the files; those that have not changed stay as they are.",
                required=True,
            ),
            Own(
                ("--stamp",),
                "A file that is written last, always: the output of a build system's rule.",
                "FILE",
            ),
            Own(("--depfile",), "What the stamp depends on, as Make, Ninja and CMake read it.", "FILE"),
        ),
    ),
    Command(
        "describe",
        "describe",
        "Tells a build system what to compile, with which flags, and what it depends on.",
        ("model",),
        optional=("model",),
        own=(_out("DIR", "The folder for the board's linker script."),),
    ),
    Command(
        "sizes",
        "sizes",
        "Tells what a linked image takes of each memory; writes its files for flash.",
        ("elf",),
        own=(
            _out("DIR", "The folder for the files for flash and sizes.txt."),
            Own(
                ("--depth",),
                "Levels of the tree that are shown: memory, who brought it, library, file, symbol. "
                "(default: 3; with --out none)",
                "N",
            ),
            Own(("--diff",), "Shows what grew since an earlier image, what came and what went.", "OLD.elf"),
            _MARKDOWN,
            _FAIL_IF,
        ),
    ),
    Command(
        "validate",
        "validate",
        "Builds, runs, and compares with the reference; on a data set also with its labels.",
        ("model",),
        own=(
            Own(
                ("--fail-if",),
                "Ends with status 1 where a figure of a data set is below what it must reach: top1<70%%, "
                "recall<50%%, precision<50%% (of every class); commas between several.",
                "LIMITS",
            ),
        ),
    ),
    Command("profile", "profile", "Builds, runs, and counts the instructions of every layer.", ("model",)),
    Command(
        "debug",
        "debug",
        "Builds for a debugger, starts the server that it connects to, and says how to.",
        ("model",),
        own=(
            _out(
                "DIR",
                "The folder in which the firmware finds its input and leaves its output.",
                required=True,
            ),
        ),
    ),
    Command(
        "flash",
        "flash",
        "Builds test firmware that answers over a wire, and brings it into a board's flash.",
        ("model",),
        own=(_out("DIR", "The folder for the image, which another tool may want.", required=True),),
    ),
    Command(
        "ops",
        "ops",
        "Lists TFLite's operators by data type, read or refused with the reason, and their kernels on every "
        "board; of a network, the operators that it has.",
        ("model",),
        optional=("model",),
    ),
    Command("boards", "boards", "Lists the boards."),
    Command(
        "target",
        "target",
        "Checks the kernels of a target plugin: random operators, compiled, run, compared with the "
        "reference.",
        ("plugin",),
        own=(
            Own(("action",), "What to do.", choices=("check",)),
            _out("DIR", "The folder for the networks on which a kernel fails."),
        ),
    ),
    Command(
        "zoo",
        "zoo",
        "Lists the networks that can be made, or writes one as .tflite.",
        ("model",),
        optional=("model",),
        own=(_out("DIR", "The folder for the file (default: this one)."),),
    ),
    Command(
        "watch",
        "plan",
        "Plans anew whenever the network or the board is saved, and shows what that changes.",
        ("model",),
        own=(Own(("--once",), "Ends after the first plan."),),
    ),
    Command(
        "daemon",
        "",
        "Starts, stops or shows the planner's daemon, which makes every plan after the first one cheap.",
        own=(
            Own(("action",), "What to do.", choices=("start", "stop", "restart", "status", "logs")),
            Own(("--all",), "With stop and status: daemons of other code of buildtool as well."),
        ),
    ),
    Command(
        "cache",
        "",
        "Shows, checks or empties what is kept of earlier plans; explains what was made anew, and why.",
        own=(
            Own(("action",), "What to do.", choices=("stats", "verify", "clear", "explain")),
            Own(("words",), "With explain: words that the request has, such as the model's file.", many=True),
        ),
    ),
    Command(
        "ide",
        "",
        "Writes an editor's files: adds to those that are there, and changes nothing in them.",
        own=(
            Own(("editor",), "Which editor.", choices=("vscode",)),
            Own(("-b", "--board"), "The board (default: the editor asks).", "BOARD"),
            Own(("--model",), "The network (default: the editor asks).", "MODEL"),
            Own(("--folder",), "The folder that the editor opens (default: this one).", "DIR"),
        ),
    ),
    Command(
        "diff",
        "",
        "Tells what changed between two answers that were kept as JSON, or two locked plans.",
        own=(
            Own(("before",), "An answer (--json) of plan, profile, validate, build or sizes, or a plan."),
            Own(("after",), "A later one."),
            _MARKDOWN,
            _FAIL_IF,
            Own(("--depth",), "Levels of the tree of sizes that are shown. (default: 3)", "N"),
        ),
    ),
    Command(
        "split",
        "split",
        "Splits a trained network into slim branches until it suits a board: trains, measures, writes int8.",
        ("network",),
        own=(
            _out(
                "DIR", "The folder for records and results; the same command goes on there. (default: split)"
            ),
        ),
    ),
    Command(
        "arena",
        "arena",
        "Places the buffers of an arena problem (.csv) as low as possible, or within a capacity.",
        ("file",),
        own=(_out("FILE", "Where to write the table with the offsets."),),
    ),
)
_REQUIRED = ("board", "model", "file", "network", "train_data")
CMAKE_DIR = "--cmake-dir"
VERSION = "--version"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Arguments; UsageError with a suggestion for an unknown option."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    command = next((one for one in COMMANDS if argv and one.name == argv[0]), None)
    if command is None:
        return parser().parse_args(argv)
    # Its own parser alone: to make those of all commands takes as long as a client may take in all.
    sub = _Parser(prog=f"buildtool {command.name}", description=command.summary, allow_abbrev=False)
    _fill(sub, command)
    for word in argv[1 : argv.index("--") if "--" in argv else None]:
        name = word.partition("=")[0]
        # Before argparse looks: it would rather complain of what is missing than of what is misspelt.
        if name.startswith("--") and name not in sub._option_string_actions:
            raise _unknown(command.name, name, list(sub._option_string_actions))
    return sub.parse_args(argv[1:], argparse.Namespace(command=command.name))


def request(args: argparse.Namespace) -> dict[str, Any]:
    """The request that the arguments ask for."""
    command = next(command for command in COMMANDS if command.name == args.command)
    found: dict[str, Any] = {"kind": command.kind}
    options: dict[str, Any] = {}
    for option in options_of(command.kind) if command.kind else ():
        value = getattr(args, option.name)
        if value is not None:
            place = options if option.group in NESTED else found
            place[option.name] = from_text(option, value)
    return found | ({"options": options} if options else {})


def _unknown(command: str, name: str, known: list[str]) -> UsageError:
    """The error for an option that a subcommand does not have."""
    elsewhere = name in {option.flagged for option in BY_NAME.values()}
    what = f"'{command}' has no option '{name}'" if elsewhere else f"unknown option '{name}'"
    return UsageError(what, hint=did_you_mean(name, known) if not elsewhere else f"leave {name} out")


def columns(stream: int = 1) -> int:
    """Characters of a line: as COLUMNS says, or of the terminal behind a stream's number; 0: not known."""
    text = os.environ.get("COLUMNS", "")
    if text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text):
        return int(text)
    try:
        return os.get_terminal_size(stream).columns
    except (OSError, ValueError):
        return 0


class _Parser(argparse.ArgumentParser):
    """argparse with our errors: one line in the one style, with suggestions."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """One that is told how wide the terminal is: to find out itself, argparse imports much."""
        return argparse.HelpFormatter(self.prog, width=(columns() or 80) - 2)

    def format_help(self) -> str:
        """With examples, exit status and more below the options."""
        from buildtool.fronts.cli import helptexts

        command = self.prog.partition(" ")[2]
        return f"{super().format_help()}\n{helptexts.text(command, (columns() or 80) - 2)}"

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help or version; unlike argparse's own, it tells of what cannot be written."""
        if message:
            print(message, end="", file=file or sys.stderr, flush=True)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = action.dest.replace("_", "-")
            raise UsageError(
                f"unknown {what} '{value}'", hint=did_you_mean(str(value), map(str, action.choices))
            )


def parser() -> _Parser:
    """The whole command line, each command with its own parser."""
    whole = _Parser(prog="buildtool", description="Trained int8 networks into microcontroller firmware.")
    # Both are answered before a command is looked for.
    whole.add_argument(
        VERSION, action="store_true", help="print the version, the package and its folder, and exit"
    )
    whole.add_argument(CMAKE_DIR, action="store_true", help="print the folder of the CMake package and exit")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        text = command.summary
        _fill(commands.add_parser(command.name, help=text, description=text, allow_abbrev=False), command)
    return whole


def _fill(sub: argparse.ArgumentParser, command: Command) -> None:
    """Gives a command's parser its arguments."""
    groups: dict[Group, Any] = {}
    own_words = [own for own in command.own if not own.names[0].startswith("-")]
    for own in own_words:
        _add_own(sub, own)
    for option in options_of(command.kind) if command.kind else ():
        if option.name in command.positional:
            _add_positional(sub, option, option.name in command.optional)
            continue
        if option.group not in groups:
            groups[option.group] = sub.add_argument_group(_TITLES[option.group])
        _add(groups[option.group], option, required=_is_required(command, option))
    keeping = (_DAEMON, _NO_CACHE, _RECACHE, _HASH_INPUTS) if command.name in _KEEPING else ()
    for own in (*command.own, *keeping, _JSON, _SARIF):
        if own not in own_words:
            _add_own(sub, own)


def _is_required(command: Command, option: Option) -> bool:
    return option.name in _REQUIRED and option.name not in command.optional


def _add_positional(parser: argparse.ArgumentParser, option: Option, optional: bool) -> None:
    parser.add_argument(
        option.name, metavar=option.metavar, nargs="?" if optional else None, help=_help(option)
    )


def _add(group: Any, option: Option, required: bool) -> None:
    names = ["-b", option.flagged] if option.flagged == "--board" else [option.flagged]
    if option.flag:
        group.add_argument(*names, dest=option.name, action="store_true", default=None, help=_help(option))
        return
    group.add_argument(
        *names,
        dest=option.name,
        metavar=option.metavar,
        action="append" if option.many else "store",
        required=required,
        help=_help(option),
    )


def _add_own(parser: argparse.ArgumentParser, own: Own) -> None:
    if not own.names[0].startswith("-"):
        nargs, words = ("*", "WORD") if own.many else (None, None)
        parser.add_argument(*own.names, nargs=nargs, metavar=words, choices=own.choices, help=own.sentence)
        return
    if not own.metavar:
        parser.add_argument(*own.names, action="store_true", help=own.sentence)
        return
    parser.add_argument(
        *own.names, metavar=own.metavar, required=own.required, choices=own.choices, help=own.sentence
    )


def _help(option: Option) -> str:
    """The sentence and the default; argparse takes a percent sign for a format."""
    return option.help.replace("%", "%%")
