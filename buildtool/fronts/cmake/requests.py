"""What the CMake package says on standard input, and the arguments of buildtool_add_network in it.

A fact is a line, its name before the first blank. Arguments are the options of `emit` in capitals, each with
a value.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from buildtool.client import Digests, UsageError, did_you_mean, options_of
from buildtool.client import options as table
from buildtool.fronts.cmake import quoting

_MORE = "DEPENDS"  # files and targets that the rule waits for, as add_custom_command has it
DESK = ("on", "wire")  # how test firmware answers: of its compilation, and of its runs
_OPTIONS = {option.name.upper(): option for option in options_of("emit") if option.name != "name"}
_OPTIONS |= {name.upper(): table.BY_NAME[name] for name in DESK}
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
        """The flags of every C file of the folder, without generator expressions."""
        words = shlex.split(self["flags"])
        for option in self.option:
            if "$<" not in option:
                words += (
                    shlex.split(option.removeprefix("SHELL:")) if option.startswith("SHELL:") else [option]
                )
        return words


@dataclass
class Wanted:
    """What a network is to be made of.

    `given`: options of `emit` by name, as text; paths are absolute. `files`: the paths among them that are
    there, or that the project makes. `depends`: what else the rule waits for.
    """

    name: str
    given: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    depends: list[str] = field(default_factory=list)

    @property
    def described(self) -> dict[str, object]:
        """The request `describe` for it."""
        known = {option.name: option for option in options_of("describe")}
        asked = {name: text for name, text in self.given.items() if name in known}
        return {"name": self.name, **{k: table.from_text(known[k], text) for k, text in asked.items()}}

    @property
    def words(self) -> list[str]:
        """The command line of `buildtool emit`, without the files that it writes."""
        options = [table.BY_NAME[name] for name in self.given if name not in ("model", *DESK)]
        named = [f"{option.flagged}={self.given[option.name]}" for option in options]
        return ["emit", self.given["model"], *named, f"--name={self.name}"]


def read_call(context: Context) -> Wanted:
    """The arguments of a call, checked; UsageError for those that are wrong."""
    name = table.parse("name", context["name"])
    found = Wanted(name)
    values: dict[str, str] = {}
    left = list(context.argument)
    while left:
        keyword = left.pop(0)
        if keyword == _MORE:
            while left and left[0] not in _OPTIONS:
                found.depends.append(left.pop(0))
            continue
        if keyword not in _OPTIONS:
            hint = did_you_mean(keyword.upper(), [*_OPTIONS, _MORE])
            raise UsageError(f"unknown keyword '{keyword}'", hint=hint)
        if keyword in values:
            raise UsageError(f"{keyword} is given twice", hint="leave one of them out")
        if not _OPTIONS[keyword].flag and not left:
            raise UsageError(f"{keyword} has no value", hint=_OPTIONS[keyword].sentence)
        values[keyword] = "1" if _OPTIONS[keyword].flag else left.pop(0)
    values = {keyword: value for keyword, value in values.items() if value}  # empty: the default
    if context["board"] and "BOARD" not in values:
        values["BOARD"] = context["board"]
    for keyword in ("MODEL", "BOARD"):
        if keyword not in values:
            more = " (a toolchain file of buildtool's names the board as well)" if keyword == "BOARD" else ""
            raise UsageError(f"{keyword} is missing{more}", hint=_OPTIONS[keyword].sentence)
    for keyword, value in values.items():
        option = _OPTIONS[keyword]
        found.given[option.name] = file_or_name(context, option, value, found.files)
    for name in DESK:
        if name in found.given:
            table.parse(name, found.given[name])
    nested = {
        o.name: found.given[o.name]
        for o in _OPTIONS.values()
        if o.name in found.given and o.group is table.Group.PLANNING
    }
    table.planning({name: table.from_text(table.BY_NAME[name], text) for name, text in nested.items()})
    if "plan" in found.given:
        table.beside_plan(nested)
    return found


def read_stat_cache() -> Digests:
    """The digests of files that were read before in this project."""
    return Digests(f"files of the CMake project in {Path.cwd()}")


def file_or_name(context: Context, option: table.Option, value: str, files: list[str] | None = None) -> str:
    """A value whose path, if it is one, is absolute: of the source folder, or of what the project makes.

    `files` takes up the path. UsageError for one that nothing is known of.
    """
    source, binary = (os.path.normpath(Path(context[folder], value)) for folder in ("source", "binary"))
    if option.folder:
        if not Path(source).is_dir():
            raise UsageError("there is no such folder", path=value, option=option.name)
        return quoting.path(source, option.name)
    named = bool(option.suffixes) and value.lower().endswith(option.suffixes or ())
    if option.suffixes is None or not (named or (option.name == "model" and Path(source).is_file())):
        return value
    for path in (source, binary):
        if path in context.generated or Path(path).is_file():
            if files is not None:
                files.append(path)
            return quoting.path(path, option.name)
    raise UsageError(
        "there is no such file, and no rule of this project that is known here makes it",
        path=value,
        option=option.name,
        hint="correct the path, or put the add_custom_command that makes it before",
    )
