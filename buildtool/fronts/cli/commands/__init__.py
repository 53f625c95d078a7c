"""The commands: their names, their arguments, and how they ask the service.

A command is a function in one of this package's files, with its description for the command line in a
decorator. `make_show_command` makes a command that only asks the service and shows the answer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from buildtool.api.requests import options_of
from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_inputs, write_text
from buildtool.base.outfiles import write as write_files
from buildtool.fronts import asking
from buildtool.fronts.cli import console
from buildtool.options import from_text

if TYPE_CHECKING:
    from buildtool.base.session import Session

# The file of each command, in the order of the help.
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
    "example": "lists",
    "watch": "planning",
    "daemon": "machine",
    "cache": "machine",
    "ide": "machine",
    "diff": "figures",
    "quantize": "quantising",
    "split": "planning",
    "sweep": "sweeping",
    "arena": "planning",
}

Result = tuple[Mapping[str, object], str, int]  # the answer, its text, the exit status
Run = Callable[[argparse.Namespace], Result]


class Own(NamedTuple):
    """An argument of the command line that only one command has. It is not part of the request."""

    names: tuple[str, ...]
    sentence: str
    metavar: str = ""  # "": a flag without a value
    required: bool = False
    choices: tuple[str, ...] | None = None
    many: bool = False  # a positional argument of any number of words, or an option that may be repeated
    optional: bool = False  # a positional argument that may be left out
    bare: str = ""  # the value if an argument with choices is given without a value


class Command(NamedTuple):
    """A subcommand: the function that runs it, its request and its arguments.

    - `kind`: the kind of its request ("": it sends none).
    - `positional`: the options that are positional arguments.
    - `optional`: options that the request needs but the command line may leave out.
    - `examples`: pairs of a command line and what it does.
    - `begins`: the progress text until the service sends one.
    - `plans`: whether it plans, and so has the options for the daemon and the cache.
    - `multiplies`: whether it may multiply matrices. Otherwise numpy starts no threads, which would take
      longer than a small plan.
    """

    name: str
    kind: str
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
    """Returns a decorator that turns a function into the command with the function's name.

    `summary` describes it in the help. `kind` is the kind of its request (None: the same name). `more` are
    further fields of Command.
    """

    def make_command(run: Run) -> Command:
        name = run.__name__
        return Command(name, name if kind is None else kind, summary, run, **more)

    return make_command


def make_show_command(name: str, text: str, summary: str, *, exact: str = "", **more: Any) -> Command:
    """Returns a command that shows the answer to its request as text.

    - `text`: a function of `buildtool.fronts.texts`, such as "front:text".
    - `exact`: the key of the answer that says whether the exit status is 0 ("": it is 0).
    - `more`: further fields of Command.
    """

    def run(args: argparse.Namespace) -> Result:
        answer = ask(args)
        module, _, function = text.partition(":")
        shown = ""
        if not args.json:
            shown = getattr(import_module(f"buildtool.fronts.texts.{module}"), function)(answer)
        return answer, shown, 1 if exact and not answer[exact] else 0

    return Command(name, name, summary, run, **more)


def load(name: str) -> Command:
    """Returns the command that has this name in COMMANDS."""
    loaded: Command = getattr(import_module(f"{__name__}.{COMMANDS[name]}"), name)
    return loaded


def missing(name: str, arguments: str) -> UsageError:
    """Returns the error for a call of the command `name` without arguments that it needs.

    `arguments` names these arguments. The hint has an example, about the user's own network if the call names
    one.
    """
    example = load(name).examples[0][0]
    own = [word for word in sys.argv if word.endswith((".tflite", ".onnx"))]
    if own and (network := re.search(r"\S+\.tflite\b", example)):
        example = example.replace(network[0], shlex.quote(own[0]), 1)
    hint = f"for example: {example}; 'buildtool {name} --help' has more"
    return UsageError(f"the following arguments are required: {arguments}", hint=hint)


def out_argument(metavar: str, sentence: str, required: bool = False) -> Own:
    """Returns the argument --out. `sentence` is its help text, and `metavar` stands for its value there."""
    return Own(("-o", "--out"), sentence, metavar, required)


MARKDOWN = Own(("--markdown",), "Prints what changed as Markdown tables, for a pull request.")
FAIL_IF = Own(
    ("--fail-if",),
    "Ends with status 1 where a figure grew by more than its limit (ram+2%%, weights+4K, memory.flash+0) or "
    "is below its lower limit (top1<70%%). Commas separate several limits.",
    "LIMITS",
)


def request_of(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the request that the arguments describe."""
    kind = load(args.command).kind
    given = ((option, getattr(args, option.name)) for option in options_of(kind))
    values = {option.name: from_text(option, value) for option, value in given if value is not None}
    return asking.build_request(kind, values)


def ask(args: argparse.Namespace, kind: str = "", without: Collection[str] = (), **more: str) -> Any:
    """Sends the request that the arguments describe, and returns the answer.

    `kind` replaces the kind of the request ("": it does not). Keys in `without` are left out of the request,
    and those in `more` are added.
    """
    from buildtool.client import door

    request = {name: value for name, value in request_of(args).items() if name not in without}
    request |= {**more, "kind": kind} if kind else {}
    no_cache, recache = getattr(args, "no_cache", False), getattr(args, "recache", False)
    if no_cache and recache:
        raise UsageError("--no-cache and --recache exclude each other", hint="leave one of them out")
    use = "off" if no_cache else "renew" if recache else "on"
    mode = args.daemon if hasattr(args, "daemon") else door.Mode.OFF

    def opened() -> contextlib.AbstractContextManager[Session]:
        from buildtool.api import open_session

        return contextlib.nullcontext(args.session or open_session())

    with console.progress(load(args.command).begins) as listen:
        return asking.ask(request, daemon=mode, cache=use, opened=opened, listen=listen)


def input_files(args: argparse.Namespace) -> list[str]:
    """Returns the existing files that the answer to the arguments' request depends on."""
    return asking.input_files(request_of(args))


def write_file(
    args: argparse.Namespace, name: str, data: bytes, again: str | None = None, *, is_text: bool = False
) -> list[str]:
    """Writes a file and returns its path in a list.

    Raises UsageError if the file is an input of the request; only the input `again` may be replaced. With
    `is_text`, also raises UsageError if the text would replace a file that is not text.
    """
    path, protected = Path(name), {os.path.realpath(read) for read in input_files(args)}
    keep_inputs([(path, None)], protected - {os.path.realpath(again)} if again else protected)
    return write_text(path, data) if is_text else write_files({path.name: data}, path.parent)


def paths_in(folder: str, files: Mapping[str, bytes]) -> list[tuple[Path, bytes]]:
    """Returns the path in `folder` and the content of each file."""
    return [(Path(folder) / name, data) for name, data in files.items()]
