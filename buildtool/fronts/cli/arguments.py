"""The command line's arguments, made from the table of options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.fronts.cli.commands import COMMANDS, Command, Own, load
from buildtool.fronts.cli.console import columns
from buildtool.options import BY_NAME
from buildtool.options.table import Group, Option

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
_NO_CACHE = Own(("--no-cache",), "Plans anew, and keeps nothing of it.")
_RECACHE = Own(("--recache",), "Plans anew, and keeps that instead of what was kept.")
_HASH_INPUTS = Own(
    ("--hash-inputs",),
    "Reads every file that has a part in the answer, whatever its times say; asks no daemon. For releases.",
)
_REQUIRED = ("board", "model", "file", "network", "train_data")
CMAKE_DIR = "--cmake-dir"
VERSION = "--version"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Arguments; UsageError with a suggestion for an unknown option."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] not in COMMANDS:
        return parser().parse_args(argv)
    command = load(argv[0])
    # Its own parser alone: to make those of all commands takes as long as a client may take in all.
    sub = _Parser(prog=f"buildtool {command.name}", description=command.summary, allow_abbrev=False)
    _fill(sub, command)
    for word in argv[1 : argv.index("--") if "--" in argv else None]:
        name = word.partition("=")[0]
        # Before argparse looks: it would rather complain of what is missing than of what is misspelt.
        if name.startswith("--") and name not in sub._option_string_actions:
            raise _unknown(command.name, name, list(sub._option_string_actions))
    return sub.parse_args(argv[1:], argparse.Namespace(command=command.name))


def _unknown(command: str, name: str, known: list[str]) -> UsageError:
    """The error for an option that a subcommand does not have."""
    elsewhere = name in {option.flagged for option in BY_NAME.values()}
    what = f"'{command}' has no option '{name}'" if elsewhere else f"unknown option '{name}'"
    return UsageError(what, hint=did_you_mean(name, known) if not elsewhere else f"leave {name} out")


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
    for command in map(load, COMMANDS):
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
        required = option.name in _REQUIRED and option.name not in command.optional
        if option.group not in groups:
            groups[option.group] = sub.add_argument_group(_TITLES[option.group])
        _add(groups[option.group], option, required=required)
    keeping = (_DAEMON, _NO_CACHE, _RECACHE, _HASH_INPUTS) if command.plans else ()
    for own in (*command.own, *keeping, _JSON, _SARIF):
        if own not in own_words:
            _add_own(sub, own)


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
