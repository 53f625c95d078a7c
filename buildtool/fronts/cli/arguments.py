"""The command line's arguments, made from the table of options; its help, and completion in shells."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError, did_you_mean
from buildtool.fronts.cli.commands import COMMANDS, Command, Own, load, missing
from buildtool.fronts.cli.console import columns
from buildtool.options import BY_NAME
from buildtool.options.table import Group

_TITLES = {
    Group.PLANNING: "planning",
    Group.COUNTING: "ONNX and Darknet files without a board",
    Group.TARGET: "target",
    Group.FIELD: "checks in the field",
    Group.INPUT: "input",
    Group.BUILT: "existing files",
    Group.DESK: "an attached board",
    Group.REPORT: "report",
    Group.SPLIT: "splitting and training",
    Group.QUANTISING: "quantising",
    Group.OTHER: "problem",
}


_JSON = Own(("--json",), "Prints only the answer, as JSON.")
_SARIF = Own(("--sarif",), "Also writes the errors to FILE, in SARIF 2.1.0, which CI services read.", "FILE")
_DAEMON = Own(
    ("--daemon",),
    "Which process plans: the daemon (auto: starts it where none runs; require: fails where it cannot be "
    "used), or this process (off). "
    "(default: $BUILDTOOL_DAEMON, else auto; off where $CI is set)",
    "MODE",
    choices=("auto", "off", "require"),
)
_NO_CACHE = Own(("--no-cache",), "Plans anew and stores nothing in the cache.")
_RECACHE = Own(("--recache",), "Plans anew and replaces the entries of the cache.")
_HASH_INPUTS = Own(
    ("--hash-inputs",),
    "Reads every file that the answer depends on, even if its times are unchanged, and uses no daemon. "
    "For releases.",
)
_CACHE_URL = Own(
    ("--cache-url",),
    "A server with a cache that several machines share: http://HOST/PATH or redis://HOST. "
    "(default: $BUILDTOOL_CACHE_URL, else none)",
    "URL",
)
_CACHE_MODE = Own(
    ("--cache-mode",),
    "How the shared cache is used: read, or write (new entries are sent to it as well). "
    "(default: $BUILDTOOL_CACHE_MODE, else read)",
    "MODE",
    choices=("read", "write"),
)
EXAMPLES = (
    ("buildtool analyze wake.tflite", "Does it fit, and where? What would help?"),
    ("buildtool plan wake.tflite -b cortex-m4 --ram 64K", "How it runs within 64 KiB."),
    ("buildtool build wake.tflite -b cortex-m4 -o out", "The firmware, as files."),
    ("buildtool validate wake.tflite -b cortex-m4", "Is its output exact?"),
)  # in the help of `buildtool` itself
_STATUS = (
    ("0", "Success; with validate and profile, the output is exact, or within its bounds."),
    ("1", "An error, or an output that differs."),
    ("2", "A mistake in the command line, or a name in it that is unknown."),
    ("70", "A bug in buildtool: please report it."),
)
_ENVIRONMENT = (
    ("BUILDTOOL_DAEMON", "Which process plans, as --daemon: auto, off or require."),
    ("BUILDTOOL_CACHE", "off: stores no plan and no object; names of cache namespaces: uses only these."),
    ("BUILDTOOL_CACHE_URL", "A cache that several machines share, as --cache-url."),
    ("BUILDTOOL_CACHE_MODE", "How the shared cache is used, as --cache-mode: read or write."),
    ("BUILDTOOL_CACHE_KEY", "A secret that signs the entries of the shared cache."),
    ("BUILDTOOL_CACHE_USER", "The user of the shared cache; BUILDTOOL_CACHE_PASSWORD is the password."),
    ("BUILDTOOL_CACHE_TOKEN", "A bearer token for the shared cache, in place of user and password."),
    ("BUILDTOOL_COMPILER_ENV", "Names of further variables to pass to compilers, separated by commas."),
    ("BUILDTOOL_HASH_INPUTS", "1: every file is read, even if its times are unchanged."),
    ("BUILDTOOL_CLANG", "Path of the clang to use, in place of those in PATH."),
    ("BUILDTOOL_GCC", "The same for gcc."),
    ("CI", "If set, no daemon is started."),
    ("COLUMNS", "The width of tables, in characters."),
    ("NO_COLOR", "If set, text is not coloured."),
    ("FORCE_COLOR", "If set (and not 0), text is coloured in files and pipes too."),
    ("TMPDIR", "The folder for temporary files."),
)
_FILES = (("~/.cache/buildtool", "The cache of plans and objects; $XDG_CACHE_HOME names another place."),)
_REQUIRED = ("board", "model", "file", "network", "train_data")
CMAKE_DIR = "--cmake-dir"
VERSION = "--version"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parses a command line. Raises UsageError with a suggestion for an unknown option."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] not in COMMANDS:
        return parser().parse_args(argv)
    command = load(argv[0])
    # Only this command's parser: making those of all commands would take as long as a whole client may.
    sub = _Parser(prog=f"buildtool {command.name}", description=command.summary, allow_abbrev=False)
    _fill(sub, command)
    for word in argv[1 : argv.index("--") if "--" in argv else None]:
        name = word.partition("=")[0]
        options = list(sub._option_string_actions)
        # Checked before argparse, which would report a missing argument instead of the misspelt one.
        if name.startswith("--") and name not in options:
            if name in {option.flagged for option in BY_NAME.values()}:
                raise UsageError(f"'{command.name}' has no option '{name}'", hint=f"leave {name} out")
            raise UsageError(f"unknown option '{name}'", hint=did_you_mean(name, options))
    words = _fill_bare(argv[1:], command.own)
    return sub.parse_args(words, argparse.Namespace(command=command.name))


def _fill_bare(words: Sequence[str], owns: Sequence[Own]) -> list[str]:
    """Returns the words with a value for each argument that may be given without one.

    argparse would take the next word as the value, and that word may be the model.
    """
    bare = {name: own for own in owns if own.bare for name in own.names}
    filled = []
    for word, after in zip(words, [*words, ""][1:], strict=True):
        own = bare.get(word)
        filled.append(f"{word}={own.bare}" if own and after not in (own.choices or ()) else word)
    return filled


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in our style: one line, with suggestions."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """Returns a formatter with the terminal's width.

        To find it, argparse itself would import many modules.
        """
        return argparse.HelpFormatter(self.prog, width=(columns() or 80) - 2)

    def format_help(self) -> str:
        """Returns the help, with examples, exit status and more below the options."""
        return f"{super().format_help()}\n{_more_help(self.prog.partition(' ')[2], (columns() or 80) - 2)}"

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help or version. Raises OSError if that fails, which argparse's own method would ignore."""
        if message:
            print(message, end="", file=file or sys.stderr, flush=True)

    def error(self, message: str) -> NoReturn:
        _, _, arguments = message.partition(" are required: ")
        name = self.prog.partition(" ")[2]
        if arguments and name in COMMANDS and load(name).examples:
            raise missing(name, arguments)
        raise UsageError(message, hint=f"see '{self.prog} --help'")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = action.dest.replace("_", "-")
            hint = did_you_mean(str(value), map(str, action.choices))
            raise UsageError(f"unknown {what} '{value}'", hint=hint)


def parser() -> _Parser:
    """Returns the parser of the whole command line, with a parser for each command."""
    whole = _Parser(
        prog="buildtool", description="Turns trained int8 networks into microcontroller firmware."
    )
    # `main.run` answers both before it looks for a command.
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
    """Adds a command's arguments to its parser."""
    groups: dict[Group, Any] = {}
    cache_options: tuple[Own, ...] = ()
    if command.plans:
        cache_options = (_DAEMON, _NO_CACHE, _RECACHE, _CACHE_URL, _CACHE_MODE, _HASH_INPUTS)
    for own in command.own:
        if not own.names[0].startswith("-"):
            nargs, words = ("*", "WORD") if own.many else ("?" if own.optional else None, own.metavar or None)
            sub.add_argument(*own.names, nargs=nargs, metavar=words, choices=own.choices, help=own.sentence)
    for option in options_of(command.kind) if command.kind else ():
        text = option.help.replace("%", "%%")  # argparse formats the text with %
        optional = option.name in command.optional
        if option.name in command.positional:
            sub.add_argument(option.name, metavar=option.metavar, nargs="?" if optional else None, help=text)
            continue
        if option.group not in groups:
            groups[option.group] = sub.add_argument_group(_TITLES[option.group])
        names = ["-b", option.flagged] if option.flagged == "--board" else [option.flagged]
        settings: dict[str, Any] = {"action": "store_true", "default": None}
        if not option.flag:
            settings = {"action": "append" if option.many else "store", "metavar": option.metavar}
            settings["required"] = option.name in _REQUIRED and not optional
        groups[option.group].add_argument(*names, dest=option.name, help=text, **settings)
    for own in (*command.own, *cache_options, _JSON, _SARIF):
        if own.names[0].startswith("-"):
            settings = {"action": "store_true"}
            if own.metavar:
                settings = {"metavar": own.metavar, "required": own.required, "choices": own.choices}
                settings["metavar"] = f"[={own.metavar}]" if own.bare else own.metavar
                settings |= {"action": "append"} if own.many else {}
            sub.add_argument(*own.names, help=own.sentence, **settings)


# ---- help below the options -----------------------------------------------------------------------------


def _more_help(command: str, width: int) -> str:
    """Returns the end of a command's help, in lines of at most `width` characters.

    `command` is "" for the help of `buildtool` itself.
    """
    examples = []
    for line, meaning in load(command).examples if command else EXAMPLES:
        examples += [f"  $ {line}", *(f"      {text}" for text in textwrap.wrap(meaning, max(width - 6, 20)))]
    parts = [("examples", "\n".join(examples)), ("exit status", _pairs(_STATUS, width))]
    see = "'buildtool --help' describes the environment and the files."
    if not command:
        parts += [("environment", _pairs(_ENVIRONMENT, width)), ("files", _pairs(_FILES, width))]
        see = (
            "'buildtool help COMMAND' describes a command; errors read path:line:column: error: text [CODE]."
        )
    shown = [f"{title}:\n{body}" for title, body in parts if body]
    return "\n\n".join([*shown, textwrap.fill(see, width, break_on_hyphens=False)]) + "\n"


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> str:
    """Returns a text in which each line has a name and its meaning."""
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
    """Prints the completions for the shell and ends the process."""
    from argcomplete import autocomplete

    autocomplete(completing_parser(), always_complete_options="long", exclude=("-h",))


def completing_parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command line, with a completer for each argument."""
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    def or_files(place: str, *endings: str) -> Callable[..., list[str]]:
        """Returns a completer for files with these endings and for the names at `place` (MODULE:NAME)."""
        files = FilesCompleter(endings)
        module, _, name = place.partition(":")

        def complete_word(prefix: str, **more: Any) -> list[str]:
            names = getattr(import_module(module), name)
            candidates = names() if callable(names) else names
            return [word for word in candidates if word.startswith(prefix)] + list(files(prefix, **more))

        return complete_word

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
    completers["example"] = or_files("buildtool.fronts.examples:examples")
    completers["network"] = or_files("buildtool.options.parsers:NETWORKS", ".keras")
    completers["model"] = or_files("buildtool.zoo:names", ".tflite", ".onnx")
    whole = parser()
    subparsers = [a for a in whole._actions if isinstance(a, argparse._SubParsersAction)]
    for argument in (a for action in subparsers for sub in action.choices.values() for a in sub._actions):
        if argument.dest in completers:
            argument.completer = completers[argument.dest]
    return whole
