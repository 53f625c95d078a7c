"""The types of the Python interface, made from those of answers and the table of options.

`python -m benchmarks.python_stub > buildtool/__init__.pyi` writes them. With this file editors complete the
keys of answers and the options of requests, and mypy checks scripts that use them.
"""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any

import buildtool
from benchmarks.answers_page import answers_of
from buildtool.fronts.python import answers, lists
from buildtool.fronts.python.network import Network
from buildtool.fronts.python.signatures import OPTIONS_HEAD, python_options
from buildtool.fronts.sweep import calling
from buildtool.fronts.sweep.candidates import STEPS
from buildtool.options import BY_NAME, Option, parsers

_HEAD = '''\
"""The types of the Python interface, made from those of answers and the table of options:
`python -m benchmarks.python_stub > buildtool/__init__.pyi`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Literal

from numpy.typing import ArrayLike

from buildtool.base.errors import BuildtoolError as BuildtoolError
{errors}
{imports}

__version__: str
DISTRIBUTION: str
PathText = str | PathLike[str]
Progress = Callable[[str], object] | bool | None
'''
# Class -> the kind of its request, and which of the kind's answers it is.
KINDS = {
    "Analysis": ("analyze", 0),
    "NetworkMemory": ("analyze", 1),
    "Plan": ("plan", 0),
    "Front": ("front", 0),
    "Report": ("report", 0),
    "Trace": ("trace", 0),
    "Build": ("build", 0),
    "Sources": ("emit", 0),
    "Bundle": ("bundle", 0),
    "Validation": ("validate", 0),
    "DatasetValidation": ("validate", 1),
    "Profile": ("profile", 0),
    "Description": ("describe", 0),
    "Operators": ("ops", 0),
    "Quantized": ("quantize", 0),
    "Boards": ("boards", 0),
    "Networks": ("zoo", 0),
    "Sizes": ("sizes", 0),
    "Arena": ("arena", 0),
}
# Types by the parsers of options. Others are int for whole numbers, PathText for files, and float | str.
TYPES = {
    **dict.fromkeys((parsers.text, parsers.identifier, parsers.version, parsers.wire), "str"),
    **dict.fromkeys((parsers.size, parsers.pixels, parsers.samples, parsers.sides), "int | str"),
    parsers.normalise: "str",
    parsers.names: "str | Collection[str]",
}
# Class -> the keys that name written files there, instead of the service's bytes.
WRITTEN = {
    "Trace": ("files",),
    "Build": ("files", "removed"),
    "Sources": ("files", "changed"),
    "Bundle": ("files", "changed", "removed"),
    "Description": ("files",),
    "Quantized": ("files",),
    "Arena": ("files",),
}


def stub() -> str:
    """Returns the stub file."""
    used: dict[str, str] = {}
    classes = [_answer_class(name, used) for name in KINDS]
    base = """\
class Answer(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def to_json(self) -> str: ...
    def _repr_html_(self) -> str: ...
"""
    fields = [
        f"    @property\n    def {one.name}(self) -> {one.type}: ..."
        for one in dataclasses.fields(Network)
        if one.repr
    ]
    methods = [_function(f, "    ") for f in _methods(Network)]
    network = [f"class Network:\n{_doc(Network)}", *fields, *methods]
    functions = [_function(f, "") for f in _functions()]
    sweep = [f"class Sweep:\n{_doc(calling.Sweep)}", "    rows: list[dict[str, Any]]"]
    sweep += [_function(f, "    ").replace("Row]", "dict[str, Any]]") for f in _methods(calling.Sweep)]
    sweep += ["    def __len__(self) -> int: ...", "    def __iter__(self) -> Iterator[dict[str, Any]]: ..."]
    sweep += ["    def _repr_html_(self) -> str: ...", ""]
    errors = "\n".join(
        f"from buildtool.base.errors import {name} as {name}"
        for name, home in sorted(buildtool._HOME_OF.items())
        if home == "base.errors" and name != "BuildtoolError"
    )
    imports = "\n".join(f"from {home} import {name}" for name, home in sorted(used.items()))
    head = _HEAD.format(errors=errors, imports=imports)
    return _formatted("\n".join([head, base, *classes, "\n".join(network), "", "\n".join(sweep), *functions]))


def _answer_class(name: str, used: dict[str, str]) -> str:
    own: Any = getattr(answers, name)
    kind, number = KINDS[name]
    keys = typing.get_type_hints(answers_of(kind)[number])
    keys |= dict.fromkeys(WRITTEN.get(name, ()), list[str])
    lines = [f"class {name}({own.__bases__[0].__name__}):", _doc(own)]
    for key, value in keys.items():
        lines += ["    @property", f"    def {key}(self) -> {_type(value, used)}: ..."]
    for method, function in vars(own).items():
        if inspect.isfunction(function) and not method.startswith("_"):
            lines.append(f"    def {method}{inspect.signature(function)}: ...".replace("'", ""))
    return "\n".join(lines).replace("str | Path", "PathText") + "\n"


def _type(value: Any, used: dict[str, str]) -> str:
    """Returns a type as a stub names it; adds the modules of its parts to `used`."""
    if value is type(None):
        return "None"
    if typing.is_typeddict(value):
        used[value.__name__] = value.__module__
        return str(value.__name__)
    inner = [_type(part, used) for part in typing.get_args(value)]
    origin = typing.get_origin(value)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(inner)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(inner)}]"
    return str(value.__name__)


def _functions() -> Iterator[Any]:
    for name in ("open", "boards", "networks", "operators", "sizes", "arena"):
        yield getattr(lists, name)
    yield calling.sweep


def _methods(of: type) -> Iterator[Any]:
    for name, value in vars(of).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            yield value


def _function(function: Any, indent: str) -> str:
    """Returns a function with the types of its arguments."""
    lines = []
    if isinstance(function, property):
        function = function.fget
        lines.append(f"{indent}@property")
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:  # of a sweep: each option may have several values
            own = {"board", *inspect.signature(function).parameters}
            options = {one.name: one for kind in STEPS.values() for one in python_options(kind, own)}
            parameters += [
                f"{name}: {_option_type(one)} | Collection[Any] | None = None"
                for name, one in options.items()
            ]
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        if parameter.name == "self":
            annotation = ""
        elif parameter.annotation is parameter.empty:  # an option of the request
            annotation = f": {_option_type(BY_NAME[parameter.name])} | None"
        else:
            annotation = f": {parameter.annotation.replace('answers.', '')}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}{annotation}{default}")
    returns = inspect.signature(function).return_annotation.replace("answers.", "")
    head = ", ".join(parameters)
    lines.append(f"{indent}def {function.__name__}({head}) -> {returns}:")
    lines.append(textwrap.indent(_doc(function), indent) + "\n")
    return "\n".join(lines)


def _option_type(option: Option) -> str:
    if option.flag:
        return "bool"
    if option.name == "plan":
        return "PathText | Plan"
    if option.name == "input":
        return "PathText | ArrayLike"
    if option.values:
        one = f"Literal[{', '.join(map(repr, option.values))}]"
    elif option.suffixes is not None or option.folder:
        one = "PathText"
    else:
        one = TYPES.get(option.parse, "int" if option.number else "float | str")
    return f"{one} | Collection[{one}]" if option.many else one


def _doc(of: Any) -> str:
    text = inspect.cleandoc(of.__doc__ or "").partition(OPTIONS_HEAD)[0]
    return textwrap.indent(f'"""{text}\n"""' if "\n" in text else f'"""{text}"""', "    ")


def _formatted(text: str) -> str:
    """Returns Python source as ruff sorts and formats it."""
    for command in ("check --fix --quiet --select F401,I,UP --stdin-filename", "format --stdin-filename"):
        words = [sys.executable, "-m", "ruff", *command.split(), "buildtool/__init__.pyi", "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.stdout.write(stub())
