"""The command line's arguments, made from the table of options; its help, and its completion in shells."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.fronts.cli.commands import COMMANDS, Command, Own, load
from buildtool.fronts.cli.console import columns
from buildtool.options import BY_NAME
from buildtool.options.table import Group

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
EXAMPLES = (
    ("buildtool analyze wake.tflite", "Does it fit, and where? What would help?"),
    ("buildtool plan wake.tflite -b cortex-m4 --ram 64K", "How it runs within 64 KiB."),
    ("buildtool build wake.tflite -b cortex-m4 -o out", "The firmware, as files."),
    ("buildtool validate wake.tflite -b cortex-m4", "Is its output exact?"),
)  # of all commands together
_STATUS = (
    ("0", "It worked; with validate and profile, the output is exact, or within its bounds."),
    ("1", "An error, or an output that differs."),
    ("2", "A mistake in the command line or in what it names."),
    ("70", "A fault of buildtool's own: please report it."),
)
_ENVIRONMENT = (
    ("BUILDTOOL_DAEMON", "Who plans: auto, off or require."),
    ("BUILDTOOL_CACHE", "off: no plan and no object is kept; names of levels: these alone are."),
    ("BUILDTOOL_COMPILER_ENV", "Names of more variables that compilers get, with commas between them."),
    ("BUILDTOOL_HASH_INPUTS", "1: every file is read, whatever its times say."),
    ("BUILDTOOL_CLANG", "Path of a clang, in place of those in PATH."),
    ("BUILDTOOL_GCC", "The same of a gcc."),
    ("CI", "Where it is set, no daemon is started."),
    ("COLUMNS", "The width of tables, in characters."),
    ("NO_COLOR", "Where it is set, nothing is coloured."),
    ("FORCE_COLOR", "Where it is set (not 0), text is coloured also in files and pipes."),
    ("TMPDIR", "The folder for what is built and run on the way."),
)
_FILES = (("~/.cache/buildtool", "What was planned and compiled; $XDG_CACHE_HOME names another place."),)
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
    # Making the parsers of all commands takes as long as a client may take in all.
    sub = _Parser(prog=f"buildtool {command.name}", description=command.summary, allow_abbrev=False)
    _fill(sub, command)
    for word in argv[1 : argv.index("--") if "--" in argv else None]:
        name = word.partition("=")[0]
        known = list(sub._option_string_actions)
        # Checked before argparse, which would complain about what is missing instead of what is misspelt.
        if name.startswith("--") and name not in known:
            if name in {option.flagged for option in BY_NAME.values()}:
                raise UsageError(f"'{command.name}' has no option '{name}'", hint=f"leave {name} out")
            raise UsageError(f"unknown option '{name}'", hint=did_you_mean(name, known))
    return sub.parse_args(argv[1:], argparse.Namespace(command=command.name))


class _Parser(argparse.ArgumentParser):
    """argparse with errors in our style: one line, with suggestions."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """A formatter for the terminal's width; to find the width itself, argparse imports much."""
        return argparse.HelpFormatter(self.prog, width=(columns() or 80) - 2)

    def format_help(self) -> str:
        """With examples, exit status and more below the options."""
        return f"{super().format_help()}\n{_more_help(self.prog.partition(' ')[2], (columns() or 80) - 2)}"

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help or version; unlike argparse's own method, it raises OSError where it cannot."""
        if message:
            print(message, end="", file=file or sys.stderr, flush=True)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = action.dest.replace("_", "-")
            hint = did_you_mean(str(value), map(str, action.choices))
            raise UsageError(f"unknown {what} '{value}'", hint=hint)


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
    keeping = (_DAEMON, _NO_CACHE, _RECACHE, _HASH_INPUTS) if command.plans else ()
    for own in command.own:
        if not own.names[0].startswith("-"):
            nargs, words = ("*", "WORD") if own.many else (None, None)
            sub.add_argument(*own.names, nargs=nargs, metavar=words, choices=own.choices, help=own.sentence)
    for option in options_of(command.kind) if command.kind else ():
        text = option.help.replace("%", "%%")  # argparse takes a percent sign for a format
        may_lack = option.name in command.optional
        if option.name in command.positional:
            sub.add_argument(option.name, metavar=option.metavar, nargs="?" if may_lack else None, help=text)
            continue
        if option.group not in groups:
            groups[option.group] = sub.add_argument_group(_TITLES[option.group])
        names = ["-b", option.flagged] if option.flagged == "--board" else [option.flagged]
        how: dict[str, Any] = {"action": "store_true", "default": None}
        if not option.flag:
            how = {"action": "append" if option.many else "store", "metavar": option.metavar}
            how["required"] = option.name in _REQUIRED and not may_lack
        groups[option.group].add_argument(*names, dest=option.name, help=text, **how)
    for own in (*command.own, *keeping, _JSON, _SARIF):
        if own.names[0].startswith("-"):
            value: dict[str, Any] = {"action": "store_true"}
            if own.metavar:
                value = {"metavar": own.metavar, "required": own.required, "choices": own.choices}
            sub.add_argument(*own.names, help=own.sentence, **value)


# ---- help below the options -----------------------------------------------------------------------------


def _more_help(command: str, width: int) -> str:
    """Examples, exit status and more of a command ("": of all), in lines of at most `width` characters."""
    examples = []
    for line, meaning in load(command).examples if command else EXAMPLES:
        examples += [f"  $ {line}", *(f"      {text}" for text in textwrap.wrap(meaning, max(width - 6, 20)))]
    parts = [("examples", "\n".join(examples)), ("exit status", _pairs(_STATUS, width))]
    see = "'buildtool --help' tells of environment and files."
    if not command:
        parts += [("environment", _pairs(_ENVIRONMENT, width)), ("files", _pairs(_FILES, width))]
        see = "'buildtool help COMMAND' tells of a command; errors read path:line:column: error: text [CODE]."
    shown = [f"{title}:\n{body}" for title, body in parts if body]
    return "\n\n".join([*shown, textwrap.fill(see, width, break_on_hyphens=False)]) + "\n"


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> str:
    """Names, each with its meaning behind it."""
    widest = max(len(name) for name, _ in pairs)
    return "\n".join(
        textwrap.fill(
            meaning,
            max(width, widest + 24),
            initial_indent=f"  {name:{widest}}  ",
            subsequent_indent=" " * (widest + 4),
            break_on_hyphens=False,
        )
        for name, meaning in pairs
    )


# ---- completion ------------------------------------------------------------------------------------------
#
#     eval "$(register-python-argcomplete buildtool)"        # bash and zsh; fish: --shell fish


def complete() -> None:
    """Tells the shell which words could follow, and ends the process."""
    from argcomplete import autocomplete

    autocomplete(completing_parser(), always_complete_options="long", exclude=("-h",))


def completing_parser() -> argparse.ArgumentParser:
    """The whole command line, each argument with what completes it."""
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    def or_files(place: str, *endings: str) -> Callable[..., list[str]]:
        """Completes names (imported from MODULE:NAME where needed), and files with these endings."""
        files = FilesCompleter(endings)
        module, _, name = place.partition(":")

        def words(prefix: str, **given: Any) -> list[str]:
            names = getattr(import_module(module), name)
            known = names() if callable(names) else names
            return [name for name in known if name.startswith(prefix)] + list(files(prefix, **given))

        return words

    boards = or_files("buildtool.target.registry:board_names", ".toml")
    completers: dict[str, Any] = {
        option.name: ChoicesCompleter(option.values)  # type: ignore[arg-type]
        for option in BY_NAME.values()
        if option.values
    }
    completers["toolchain"] = ChoicesCompleter(("clang", "gcc"))  # type: ignore[arg-type]
    completers |= dict.fromkeys(("out", "folder", "cmsis_nn"), DirectoriesCompleter())
    completers |= {"input": FilesCompleter((".npy",)), "file": FilesCompleter((".csv",))}
    completers |= {"board": boards, "boards": boards}
    completers["network"] = or_files("buildtool.options.parsers:NETWORKS", ".keras")
    completers["model"] = or_files("buildtool.zoo:names", ".tflite", ".onnx")
    whole = parser()
    subparsers = [a for a in whole._actions if isinstance(a, argparse._SubParsersAction)]
    for argument in (a for action in subparsers for sub in action.choices.values() for a in sub._actions):
        if argument.dest in completers:
            argument.completer = completers[argument.dest]
    return whole
