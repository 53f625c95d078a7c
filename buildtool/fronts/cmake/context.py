"""What the CMake package knows and says on standard input: a fact a line, its name before the first blank."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

_LISTS = ("argument", "option", "generated", "format")


@dataclass
class Context:
    """A call of one of the package's functions, and the project it is made in.

    `values`: by name, the network's or board's name, folders, the compiler with its flags; `argument`: those
    of the function; `option`: compile options of the folder; `generated`: files that the project makes;
    `format`: of the files for flash.
    """

    values: dict[str, str] = field(default_factory=dict)
    argument: list[str] = field(default_factory=list)
    option: list[str] = field(default_factory=list)
    generated: list[str] = field(default_factory=list)
    format: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, lines: Iterable[str]) -> Context:
        """From the lines of a request."""
        found = cls()
        for line in lines:
            name, _, value = line.rstrip("\n").partition(" ")
            if name in _LISTS:
                getattr(found, name).append(value)
            elif name:
                found.values[name] = value
        return found

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def compiler(self) -> list[str]:
        """The compiler as a command line begins with it."""
        target = self["target"] if "clang" in self["compiler_id"].lower() else ""
        return [self["compiler"], *shlex.split(self["arg1"]), *([f"--target={target}"] if target else [])]

    @property
    def flags(self) -> list[str]:
        """The flags that every C file of the folder gets, as far as they are plain words."""
        words = shlex.split(self["flags"])
        for option in self.option:
            if "$<" not in option:
                words += (
                    shlex.split(option.removeprefix("SHELL:")) if option.startswith("SHELL:") else [option]
                )
        return words
