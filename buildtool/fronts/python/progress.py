"""Passes on what the service says about its progress: to a function, or as a status line."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from buildtool.fronts.asking import Listener

Progress = Callable[[str], object] | bool | None


@contextlib.contextmanager
def listening(progress: Progress) -> Iterator[Listener | None]:
    """Yields the function that receives the service's messages; None if `progress` asks for no messages."""
    if not progress:
        yield None
        return
    with contextlib.ExitStack() as stack:
        show = progress if callable(progress) else stack.enter_context(_status_line())

        def receive(message: Mapping[str, Any]) -> None:
            state = message.get("progress")
            if isinstance(state, dict):
                show(str(state.get("text", "")))

        yield receive


@contextlib.contextmanager
def _status_line() -> Iterator[Callable[[str], object]]:
    """Yields a function that shows a text in a status line, in place of the text before."""
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        yield lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return
    with tqdm(bar_format="{desc} [{elapsed}]", leave=False) as bar:
        yield bar.set_description_str
