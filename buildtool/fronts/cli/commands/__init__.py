"""The commands: what each is called and takes, and how it asks the service.

A command is one function in one of these files; what describes it on the command line stands above it. One
that asks and shows the answer, and does nothing else, is named with its text (`shows`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.api.requests import options_of
from buildtool.base.errors import BuildtoolError, UsageError
from buildtool.base.outfiles import keep_inputs
from buildtool.base.outfiles import write as write_files
from buildtool.fronts.cli import console
from buildtool.options import NESTED, from_text

# The file of each command, in the order in which help lists them.
COMMANDS = {
    "analyze": "planning",
    "plan": "planning",
    "front": "planning",
    "report": "planning",
    "build": "building",
    "emit": "building",
    "describe": "building",
    "sizes": "figures",
    "validate": "running",
    "profile": "running",
    "debug": "running",
    "flash": "running",
    "ops": "lists",
    "boards": "lists",
    "target": "lists",
    "zoo": "lists",
    "watch": "planning",
    "daemon": "machine",
    "cache": "machine",
    "ide": "machine",
    "diff": "figures",
    "split": "planning",
    "arena": "planning",
}

Result = tuple[Mapping[str, object], str, int]  # the answer, its text, the exit status
Run = Callable[[argparse.Namespace], Result]


class Own(NamedTuple):
    """An argument of a command alone: it changes no request."""

    names: tuple[str, ...]
    sentence: str
    metavar: str = ""  # "": it takes no value
    required: bool = False
    choices: tuple[str, ...] | None = None
    many: bool = False  # of an argument without dashes: any number of words


class Command(NamedTuple):
    """A subcommand: what runs it, the kind of its request, and which of its options are positional.

    `optional`: options that the request needs and the command line may leave out. `examples`: a command line,
    and what it does. `begins`: what is being done before the service says so: it has to be loaded, and files
    to be read. `plans`: whether it plans, so that one may say where, and what is kept. `multiplies`: whether
    it may multiply matrices: for nothing else numpy need start threads, which takes longer than a small plan.
    """

    name: str
    kind: str  # "": it makes no request
    summary: str
    run: Run
    positional: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    own: tuple[Own, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    begins: str = ""
    plans: bool = False
    multiplies: bool = True


def command(summary: str, *, kind: str | None = None, **more: Any) -> Callable[[Run], Command]:
    """Makes a function the command of its name; its request has the same name unless `kind` says another."""

    def described(run: Run) -> Command:
        name = run.__name__
        return Command(name, name if kind is None else kind, summary, run, **more)

    return described


def shows(name: str, text: str, summary: str, *, exact: str = "", **more: Any) -> Command:
    """The command that shows the answer to the request of its name, by a function of texts ("front:text").

    `exact`: the key of the answer that says whether the exit status is 0.
    """

    def run(args: argparse.Namespace) -> Result:
        answer = ask(args)
        module, _, function = text.partition(":")
        words: str = getattr(import_module(f"buildtool.fronts.texts.{module}"), function)(answer)
        return answer, words, 1 if exact and not answer[exact] else 0

    return Command(name, name, summary, run, **more)


def load(name: str) -> Command:
    """A command of COMMANDS."""
    found: Command = getattr(import_module(f"{__name__}.{COMMANDS[name]}"), name)
    return found


def out(metavar: str, sentence: str, required: bool = False) -> Own:
    """The argument --out."""
    return Own(("-o", "--out"), sentence, metavar, required)


MARKDOWN = Own(("--markdown",), "Prints what changed as tables of Markdown, as pull requests show them.")
FAIL_IF = Own(
    ("--fail-if",),
    "Ends with status 1 where a figure grew by more: ram+2%%, weights+4K, memory.flash+0; or is below what "
    "it must reach: top1<70%%; commas between several.",
    "LIMITS",
)


def request_of(args: argparse.Namespace) -> dict[str, Any]:
    """The request that the arguments ask for."""
    kind = load(args.command).kind
    found: dict[str, Any] = {"kind": kind}
    options: dict[str, Any] = {}
    for option in options_of(kind):
        value = getattr(args, option.name)
        if value is not None:
            place = options if option.group in NESTED else found
            place[option.name] = from_text(option, value)
    return found | ({"options": options} if options else {})


def ask(args: argparse.Namespace, kind: str = "", without: Collection[str] = ()) -> Any:
    """The service's answer to the request that the arguments make, of another `kind`, `without` some keys."""
    from buildtool.client import door
    from buildtool.client.files import Located

    request = {name: value for name, value in request_of(args).items() if name not in without}
    located = Located(request | ({"kind": kind} if kind else {}))
    off, renew = getattr(args, "no_cache", False), getattr(args, "recache", False)
    if off and renew:
        raise UsageError("--no-cache and --recache exclude each other", hint="leave one of them out")
    use = "off" if off else "renew" if renew else "on"
    who = door.mode(args.daemon) if hasattr(args, "daemon") else door.Mode.OFF

    def here(request: Mapping[str, Any]) -> dict[str, Any]:
        from buildtool.api import answered, open_session

        session = args.session or open_session()
        session.progress = lambda text: listen({"progress": {"text": text}})
        return answered(request, session, use)

    try:
        with console.progress(load(args.command).begins) as listen:
            return door.ask(located.request, here, mode=who, cache=use, listen=listen)
    except BuildtoolError as error:
        raise located.restore_path(error) from None


def inputs(args: argparse.Namespace) -> list[str]:
    """The existing files that a request's answer depends on."""
    from buildtool.client.files import Located
    from buildtool.target.registry import board_chain

    request = Located(request_of(args)).request
    paths = [value["path"] for value in request.values() if isinstance(value, dict) and "path" in value]
    for value in (request.get("model"), request.get("board")):
        if isinstance(value, str) and Path(value).is_absolute():  # a path, as the client has made it
            paths.append(value)
    board = next((path for path in paths if path.endswith(".toml")), None)
    if board is not None:
        with contextlib.suppress(BuildtoolError, OSError):
            paths += [str(path) for path in board_chain(board)]
    return sorted(set(paths))


def write_file(args: argparse.Namespace, name: str, data: bytes, again: str | None = None) -> list[str]:
    """Writes a file, unless an input of the request lies there; `again`: an input that it may replace."""
    path, kept = Path(name), {os.path.realpath(read) for read in inputs(args)}
    keep_inputs([(path, None)], kept - {os.path.realpath(again)} if again else kept)
    return write_files({path.name: data}, path.parent)


def below(folder: str, files: Mapping[str, bytes]) -> list[tuple[Path, bytes]]:
    """The paths and contents of files to write."""
    return [(Path(folder) / name, data) for name, data in files.items()]
