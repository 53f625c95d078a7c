"""Reads requests of the CMake package from standard input, with the arguments of buildtool_add_network.

Each line is a value, with its name before the first blank. Arguments are the options of `emit` in capitals,
each with a value.
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

_MORE = "DEPENDS"  # files and targets that the rule waits for, as in add_custom_command
DESK = ("on", "wire")  # options of compiling and running for attached boards
_OPTIONS = {option.name.upper(): option for option in options_of("emit") if option.name != "name"}
_OPTIONS |= {name.upper(): table.BY_NAME[name] for name in DESK}
_LISTS = ("argument", "option", "generated", "format")


@dataclass
class Context:
    """A call of one of the CMake package's functions, with what is known about the calling project.

    - `values`: texts by name: the network's or board's name, folders, the compiler and its flags.
    - `argument`: the arguments of the call.
    - `option`: compile options of the folder.
    - `generated`: files that the project generates.
    - `format`: formats of the files for flash.
    """

    values: dict[str, str] = field(default_factory=dict)
    argument: list[str] = field(default_factory=list)
    option: list[str] = field(default_factory=list)
    generated: list[str] = field(default_factory=list)
    format: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, lines: Iterable[str]) -> Context:
        """Reads a call from the lines of a request."""
        context = cls()
        for line in lines:
            name, _, value = line.rstrip("\n").partition(" ")
            if name in _LISTS:
                getattr(context, name).append(value)
            elif name:
                context.values[name] = value
        return context

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def compiler(self) -> list[str]:
        """The first words of the compiler's command line."""
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
class NetworkCall:
    """The arguments of a call for a network.

    - `given`: options of `emit` by name, as text with absolute paths.
    - `files`: the paths among them that exist or that the project generates.
    - `depends`: other files and targets that the rule waits for.
    """

    name: str
    given: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    depends: list[str] = field(default_factory=list)

    @property
    def described(self) -> dict[str, object]:
        """The options of a `describe` request for the network."""
        entries = {option.name: option for option in options_of("describe")}
        texts = {name: text for name, text in self.given.items() if name in entries}
        return {"name": self.name, **{k: table.from_text(entries[k], text) for k, text in texts.items()}}

    @property
    def words(self) -> list[str]:
        """The command line of `buildtool emit`, without its output files."""
        options = [table.BY_NAME[name] for name in self.given if name not in ("model", *DESK)]
        named = [f"{option.flagged}={self.given[option.name]}" for option in options]
        return ["emit", self.given["model"], *named, f"--name={self.name}"]


def read_call(context: Context) -> NetworkCall:
    """Reads and checks the arguments of a call. Raises UsageError if an argument is wrong."""
    name = table.parse("name", context["name"])
    call = NetworkCall(name)
    values: dict[str, str] = {}
    words = list(context.argument)
    while words:
        keyword = words.pop(0)
        if keyword == _MORE:
            while words and words[0] not in _OPTIONS:
                call.depends.append(words.pop(0))
            continue
        if keyword not in _OPTIONS:
            hint = did_you_mean(keyword.upper(), [*_OPTIONS, _MORE])
            raise UsageError(f"unknown keyword '{keyword}'", hint=hint)
        if keyword in values:
            raise UsageError(f"{keyword} is given twice", hint="leave one of them out")
        if not _OPTIONS[keyword].flag and not words:
            raise UsageError(f"{keyword} has no value", hint=_OPTIONS[keyword].sentence)
        values[keyword] = "1" if _OPTIONS[keyword].flag else words.pop(0)
    values = {keyword: value for keyword, value in values.items() if value}  # empty: the default
    if context["board"] and "BOARD" not in values:
        values["BOARD"] = context["board"]
    for keyword in ("MODEL", "BOARD"):
        if keyword not in values:
            more = " (buildtool's toolchain files also set the board)" if keyword == "BOARD" else ""
            raise UsageError(f"{keyword} is missing{more}", hint=_OPTIONS[keyword].sentence)
    for keyword, value in values.items():
        option = _OPTIONS[keyword]
        call.given[option.name] = file_or_name(context, option, value, call.files)
    for name in DESK:
        if name in call.given:
            table.parse(name, call.given[name])
    nested = {
        o.name: call.given[o.name]
        for o in _OPTIONS.values()
        if o.name in call.given and o.group is table.Group.PLANNING
    }
    table.parse_planning({name: table.from_text(table.BY_NAME[name], text) for name, text in nested.items()})
    if "plan" in call.given:
        table.refuse_beside_plan(nested)
    return call


def read_stat_cache() -> Digests:
    """Returns the cached digests of files that were read before in this project."""
    return Digests(f"files of the CMake project in {Path.cwd()}")


def file_or_name(context: Context, option: table.Option, value: str, files: list[str] | None = None) -> str:
    """Returns an option's value, with an absolute path if the value names a file or a folder.

    A file has to be in the source folder, or the project has to generate it; its path is added to `files`.
    Raises UsageError if there is no such file or folder.
    """
    source, binary = (os.path.normpath(Path(context[folder], value)) for folder in ("source", "binary"))
    if option.folder:
        if not Path(source).is_dir():
            raise UsageError("there is no such folder", path=value, option=option.name)
        return quoting.path(source, option.name)
    is_file = bool(option.suffixes) and value.lower().endswith(option.suffixes or ())
    if option.suffixes is None or not (is_file or (option.name == "model" and Path(source).is_file())):
        return value
    for path in (source, binary):
        if path in context.generated or Path(path).is_file():
            if files is not None:
                files.append(path)
            return quoting.path(path, option.name)
    raise UsageError(
        "there is no such file, and no rule of this project so far generates it",
        path=value,
        option=option.name,
        hint="correct the path, or move the add_custom_command that generates it before this call",
    )
