"""Completion of command lines in shells: the words that argcomplete offers for each argument.

    eval "$(register-python-argcomplete buildtool)"        # bash and zsh; fish: --shell fish

Imported only where a shell asks; a command that is run has nothing to do with it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from buildtool.fronts.cli.arguments import parser
from buildtool.options import BY_NAME
from buildtool.options.parsers import NETWORKS

_FOLDERS = ("out", "folder", "cmsis_nn")


def complete() -> None:
    """Answers the shell, and ends the process."""
    from argcomplete import autocomplete

    autocomplete(prepared(), always_complete_options="long", exclude=("-h",))


def prepared() -> argparse.ArgumentParser:
    """The whole command line, each argument with what completes it."""
    whole = parser()
    for action in whole._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                for argument in sub._actions:
                    _give(argument)
    return whole


def _give(argument: argparse.Action) -> None:
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    option = BY_NAME.get(argument.dest)
    completer: Any = None
    if argument.dest in ("board", "boards"):
        completer = _and_files(_boards, ".toml")
    elif argument.dest == "network":
        completer = _and_files(lambda: NETWORKS, ".keras")
    elif argument.dest == "model":
        completer = _and_files(_networks, ".tflite", ".onnx")
    elif option is not None and option.values:
        completer = ChoicesCompleter(option.values)  # type: ignore[arg-type]
    elif argument.dest == "toolchain":
        completer = ChoicesCompleter(("clang", "gcc"))  # type: ignore[arg-type]
    elif argument.dest in _FOLDERS:
        completer = DirectoriesCompleter()
    elif argument.dest == "input":
        completer = FilesCompleter((".npy",))
    elif argument.dest == "file":
        completer = FilesCompleter((".csv",))
    if completer is not None:
        argument.completer = completer  # type: ignore[attr-defined]


def _and_files(names: Callable[[], Iterable[str]], *endings: str) -> Callable[..., list[str]]:
    """Completes names, and files with these endings."""
    from argcomplete.completers import FilesCompleter

    files = FilesCompleter(endings)

    def found(prefix: str, **given: Any) -> list[str]:
        return [name for name in names() if name.startswith(prefix)] + list(files(prefix, **given))

    return found


def _boards() -> list[str]:
    from buildtool.target.registry import board_names

    return board_names()


def _networks() -> list[str]:
    from buildtool import zoo

    return zoo.names()
