"""The answers of the Python interface: the service's answers as objects whose attributes cannot be set."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from buildtool.base.errors import did_you_mean
from buildtool.base.outfiles import write_text
from buildtool.fronts.asking import as_json

Value = Any  # of JSON, or bytes
_TEXT = "font-family:monospace;white-space:pre;overflow-x:auto"  # Jupyter has proportional letters, and wraps
# A frame has the theme of its page, and the page that of Jupyter or VS Code, not that of the system.
_THEMES = (
    "<style>"
    "[data-jp-theme-light=true] .buildtool,.vscode-light .buildtool{color-scheme:light}"
    "[data-jp-theme-light=false] .buildtool,.vscode-dark .buildtool{color-scheme:dark}"
    "</style>"
)
# Frames for the drawings of a report, as high as the drawings are.
_ARENA = "max-width:1160px;aspect-ratio:7/3;min-height:410px"
_FRONT = "max-width:1160px;aspect-ratio:29/10;min-height:310px"


class Answer(Mapping[str, Value]):
    """The answer to a request: its keys (see the reference of answers) are attributes and items.

    Values are plain: numbers, text, lists and dicts. A list of rows, such as `plan.buffers`, is a list of
    dicts, which pandas.DataFrame and polars.DataFrame take. Changing a value changes no other answer.
    """

    __slots__ = ("_said", "_values")
    # The function of buildtool.fronts.texts that makes its text ("": the text is given to the constructor).
    _text: ClassVar[str] = ""

    def __init__(self, values: Mapping[str, Value], said: str = "") -> None:
        """Makes an answer. `said` is its text ("": `_words` makes the text from the values)."""
        object.__setattr__(self, "_values", _copied(values))
        object.__setattr__(self, "_said", said)

    def __getitem__(self, key: str) -> Value:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Value:
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        hint = did_you_mean(name, self._values) if not name.startswith("_") else ""
        more = f": {hint}" if hint else ""
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}{more}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an answer cannot be changed: {name!r}")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def __reduce__(self) -> tuple[type[Answer], tuple[dict[str, Value], str]]:
        return type(self), (self._values, self._said)

    def to_json(self) -> str:
        """Returns what the command prints with --json: the answer without its bytes, keys sorted."""
        return as_json(self._values)

    def __str__(self) -> str:
        return self._said or self._words() or self.to_json()

    def _words(self) -> str:
        """Returns the text that the command prints."""
        if not self._text:
            return ""
        module, _, function = self._text.partition(":")
        words: str = getattr(import_module(f"buildtool.fronts.texts.{module}"), function)(self._values)
        return words

    def __repr__(self) -> str:
        about = [str(self._values[key]) for key in ("model", "board") if self._values.get(key)]
        figures = [words for words in self._figures() if words]
        return f"<{type(self).__name__}{' of ' if about else ''}{' on '.join(about)}{_after(figures)}>"

    def _figures(self) -> list[str]:
        """Returns the most important figures, which stand for the answer in repr()."""
        return []

    def _repr_html_(self) -> str:
        return f'<pre style="{_TEXT}">{html.escape(str(self))}</pre>'


class Analysis(Answer):
    """Whether a network fits each board, which memory or limit is too small, and what would help."""

    def _words(self) -> str:
        from buildtool.fronts.texts import analysis
        from buildtool.options import PYTHON

        return analysis.text(self._values, *PYTHON)

    def _figures(self) -> list[str]:
        fitting = [one["board"] for one in self.boards if one.get("fits")]
        return [f"fits {len(fitting)} of {len(self.boards)} boards"]


class NetworkMemory(Answer):
    """The memory of an ONNX or Darknet network that is counted without a board."""

    _text = "analysis:network_text"


class Plan(Answer):
    """How a network runs on a board. A notebook draws its arena over time."""

    _text = "plan:text"

    def save(self, path: str | Path) -> None:
        """Writes the plan to a file, for `plan=` of requests and for builds. It may replace an older plan."""
        write_text(Path(path), self.locked)

    def _figures(self) -> list[str]:
        return [f"arena {self.arena_bytes:,} bytes", f"F {self.f:.3f}"]

    def _repr_html_(self) -> str:
        from buildtool.fronts.texts.html import page

        return frame(page.draw_arena(self._values), _ARENA, repr(self)[1:-1])


class Front(Answer):
    """The Pareto front of memory and work. A notebook draws it."""

    _text = "front:text"

    def _figures(self) -> list[str]:
        return [f"{len(self.points)} plans"]

    def _repr_html_(self) -> str:
        from buildtool.fronts.texts.html import page

        if not self.points:
            return super()._repr_html_()
        return frame(page.draw_front(self._values), _FRONT, repr(self)[1:-1])


class Report(Answer):
    """A plan with all data of its page. A notebook shows the page."""

    def html(self) -> str:
        """Returns the page: a complete HTML document that fetches nothing."""
        from buildtool.fronts.texts.html.page import page
        from buildtool.options import PYTHON

        return page(self._values, PYTHON.setting).decode()

    def save(self, path: str | Path) -> None:
        """Writes the page to a file. It may replace an older page."""
        write_text(Path(path), self.html().encode())

    def _figures(self) -> list[str]:
        return [f"arena {self.arena_bytes:,} bytes", f"F {self.f:.3f}"]

    def _repr_html_(self) -> str:
        return frame(self.html(), "height:720px")


class Build(Answer):
    """A build.

    `files` are the names of the files that were written, `removed` those of outdated files that were removed.
    """


class Sources(Answer):
    """The sources of a network: `files` are their names, `changed` those that are new or differ."""


class Bundle(Answer):
    """A folder that any build system compiles: `files`, `changed` and `removed` name its files."""


class Validation(Answer):
    """A run that was compared with the reference; `within_bounds` is the verdict."""

    _text = "validation:text"

    def _figures(self) -> list[str]:
        return ["within its bounds" if self.within_bounds else "DIFFERENT"]


class DatasetValidation(Answer):
    """A run on a data set: how accurate it was, and whether it was within its bounds."""

    _text = "validation:dataset_text"


class Profile(Answer):
    """A run that counted the instructions of every operator."""

    _text = "profile:text"


class Quantized(Answer):
    """A quantised network: what it loses, and whether it fits the board."""

    _text = "quantized:text"


class Trace(Answer):
    """A plan over time in Chrome's Trace Event Format; `files` names the file that was written."""


class Description(Answer):
    """What a build system compiles, the flags, and the dependencies."""

    _text = "builds:description_text"


class Operators(Answer):
    """TFLite's operators by data type, and their kernels on every board."""

    _text = "boards:ops"


class Boards(Answer):
    """The known boards."""

    _text = "boards:boards"


class Networks(Answer):
    """The networks that can be made by name."""

    _text = "boards:zoo"


class Sizes(Answer):
    """The bytes that a linked firmware image takes in each memory of a board."""

    _text = "builds:image_text"


class Arena(Answer):
    """The offsets of an arena problem's buffers."""

    _text = "builds:arena_text"


def _copied(value: Value) -> Value:
    """Returns a copy of plain values, so that a caller's changes affect no other answer."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value]
    return value


def _after(words: list[str]) -> str:
    return f": {', '.join(words)}" if words else ""


def frame(document: str, shape: str, caption: str = "") -> str:
    """Returns an HTML document in a frame, where its styles reach nothing else of a notebook.

    `shape` is the frame's height or aspect ratio, as CSS. `caption` is a line above it ("": none).
    """
    inner = f'<iframe srcdoc="{html.escape(document)}" style="width:100%;border:0;{shape}"'
    themed = f'{_THEMES}{inner} class="buildtool"></iframe>'
    return f"<div>{html.escape(caption)}</div>{themed}" if caption else themed
