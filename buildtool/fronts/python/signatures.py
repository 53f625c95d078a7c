"""Adds the options of requests to signatures and docstrings, for help(), for editors and for notebooks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from buildtool.api.requests import options_of
from buildtool.options import Option

OPTIONS_HEAD = "\n\nOptions:\n"  # where the options begin in a docstring
OFFERED: list[str] = []  # the kinds of requests that the interface makes
_Function = TypeVar("_Function", bound=Callable[..., Any])


def offers_options(function: _Function) -> _Function:
    """Returns the function with the options of the request of the same name in place of `**options`.

    The options are in its signature and its docstring.
    """
    kind = function.__name__
    OFFERED.append(kind)
    own = list(inspect.signature(function).parameters.values())[:-1]
    options = python_options(kind, {one.name for one in own})
    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(one.name, keyword, default=None) for one in options]
    more.append(inspect.Parameter("progress", keyword, default=None, annotation="Progress"))
    about = vars(function)
    about["__signature__"] = inspect.signature(function).replace(parameters=[*own, *more])
    lines = [f"    {one.name}: {one.help}" for one in options]
    lines.append(
        "    progress: A function that receives texts about what is being done, or True: a status line."
    )
    function.__doc__ = inspect.cleandoc(function.__doc__ or "") + OPTIONS_HEAD + "\n".join(lines)
    return function


def python_options(kind: str, but: set[str]) -> list[Option]:
    """Returns the options of a kind, without `model` (which `open` takes) and those named in `but`."""
    return [option for option in options_of(kind) if option.name not in {"model", *but}]
