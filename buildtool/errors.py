"""The one exception family: what went wrong, where, and what would help."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BuildtoolError(Exception):
    """An error a user can act on.

    `code` is a stable upper-case word (for scripts), `path` the file concerned, `operator` the
    operator (index and name), `tensor` the tensor's name, `hint` what would help.
    """

    code = "ERROR"

    def __init__(
        self,
        text: str,
        *,
        path: str = "",
        operator: str = "",
        tensor: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(text)
        self.text = text
        self.path = path
        self.operator = operator
        self.tensor = tensor
        self.hint = hint

    def at(self, *, path: str = "", operator: str = "", tensor: str = "") -> BuildtoolError:
        """Fills in places that were not known where the error was raised; returns self."""
        self.path = self.path or path
        self.operator = self.operator or operator
        self.tensor = self.tensor or tensor
        return self

    def __str__(self) -> str:
        place = ":".join(part for part in (self.path, self.operator, self.tensor) if part)
        line = f"{place}: error: {self.text} [{self.code}]" if place else f"error: {self.text} [{self.code}]"
        return f"{line}\n  hint: {self.hint}" if self.hint else line


class ModelError(BuildtoolError):
    """The file is not a well-formed model."""

    code = "MODEL"


class UnsupportedError(BuildtoolError):
    """The model is well formed, but uses something that is not supported."""

    code = "UNSUPPORTED"


class PlanError(BuildtoolError):
    """No plan meets the limits, or a plan failed its check."""

    code = "PLAN"


class TargetError(BuildtoolError):
    """A board, core or kernel catalogue is unknown or inconsistent."""

    code = "TARGET"


class ToolError(BuildtoolError):
    """A compiler, emulator or other tool is missing or failed."""

    code = "TOOL"


class UsageError(BuildtoolError):
    """An option or a name given by the user is wrong."""

    code = "USAGE"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that suggests the closest known word, or lists them all."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(names)
