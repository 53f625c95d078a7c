"""Writes errors as in Python: options as keyword arguments, and commands in hints as calls.

    'buildtool boards' lists all boards           buildtool.boards() lists all boards
    buildtool plan a.tflite --board b --out c     buildtool.open('a.tflite').plan(board='b').save('c')

Commands that have no call, such as `buildtool daemon status`, stay: they are run in a shell.
"""

from __future__ import annotations

import re
import shlex

from buildtool.api.requests import options_of
from buildtool.base.errors import BuildtoolError
from buildtool.fronts.python.signatures import OFFERED
from buildtool.options import PYTHON

_LISTS = {"boards": "boards", "zoo": "networks", "ops": "operators"}
_SAVED = ("plan", "report")  # their answers write the file
# A command in a hint: between quotation marks, or from its name to the end if it names files.
_COMMAND = re.compile(r"'buildtool ([a-z]+[^']*)'|\bbuildtool ([a-z]+ [^;]+)$")


def spell_error(error: BuildtoolError) -> None:
    """Changes an error so that it names options and commands as in Python."""
    error.front = PYTHON
    error.hints = tuple(hint._replace(text=spell_commands(hint.text)) for hint in error.hints)


def spell_commands(text: str) -> str:
    """Returns a text with calls in place of commands."""
    return _COMMAND.sub(lambda found: _call(found[1] or found[2]) or found[0], text)


def _call(command: str) -> str:
    """Returns the Python call that does what a command does; "" if there is no such call."""
    kind, *words = shlex.split(command)
    if kind in _LISTS and not words:
        return f"buildtool.{_LISTS[kind]}()"
    if kind not in OFFERED:
        return ""
    if not words:
        return f"{kind}()"
    names = {option.flagged: option.name for option in options_of(kind)} | {"--out": "out", "-o": "out"}
    values, model = dict[str, str](), ""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            model = word
        elif word in names:
            values[names[word]] = next(waiting, "")
        else:
            return ""
    out = values.pop("out", "") if kind in _SAVED else ""
    given = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"buildtool.open({model!r}).{kind}({given})" + (f".save({out!r})" if out else "")
