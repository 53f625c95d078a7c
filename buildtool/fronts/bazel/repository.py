"""What the repository rules of rules/buildtool.bzl run, as `python -m`, with a file in its only argument.

The file holds a question as JSON. What answers it is written to the working folder: BUILD files, and links to
the tool's own files.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buildtool import DISTRIBUTION
from buildtool.client import BuildtoolError, Client, code_files, code_folders, options, options_of

if TYPE_CHECKING:
    from buildtool.client import answers


RULES = Path(__file__).resolve().parent / "rules"  # the .bzl files that come with the package
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
CODE = "{code}"  # in a path: the folder of the repository of the code, which only Bazel knows
KERNELS = "buildtool_kernels"  # as it is imported: in a checkout its folder has another name


@functools.cache
def packages() -> dict[str, Path]:
    """The folders of the code, by import name."""
    found = {}
    for folder in map(Path, code_folders()):
        is_kernels = (folder / "include" / "nn.h").is_file() and folder.name == "kernels"
        found[KERNELS if is_kernels else folder.name] = folder.resolve()
    return found


def files_to_watch() -> list[str]:
    """The files below the links that decide what the tool says, and the rules themselves."""
    files = [*map(Path, code_files()), *RULES.glob("*.bzl")]
    return sorted(found for path in files if (found := find_below_links(path)))


def find_below_links(path: Path) -> str:
    """A file or folder below the links; "" of one that is in no folder of the code."""
    real = path.resolve()
    for name, folder in packages().items():
        if real.is_relative_to(folder):
            below = real.relative_to(folder).as_posix()
            return name if below == "." else f"{name}/{below}"
    return ""


def require_below_links(path: Path) -> str:
    """The same of one that has to be there."""
    if found := find_below_links(path):
        return found
    raise BuildtoolError(
        "the rules for Bazel build from buildtool's own folders and those of plugins only",
        path=str(path),
        hint="make it part of a package that offers boards",
    )


# ---- text ----------------------------------------------------------------------------------------------


class Code(str):
    """An expression, written without quotes."""

    __slots__ = ()


def value(found: object) -> str:
    """A value as Starlark writes it: text, whole numbers, None, lists and maps of them."""
    if isinstance(found, Code):
        return found
    if isinstance(found, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in found) + '"'
    if isinstance(found, Mapping):
        return "{" + ", ".join(f"{value(key)}: {value(item)}" for key, item in found.items()) + "}"
    if isinstance(found, list | tuple):
        return "[" + ", ".join(map(value, found)) + "]"
    return repr(found)


def call(rule: str, **attributes: object) -> str:
    """A call of a rule, one attribute per line; attributes that are None are left out."""
    lines = [f"    {name} = {value(item)},\n" for name, item in attributes.items() if item is not None]
    return f"{rule}(\n{''.join(lines)})\n"


def load(label: str, *names: str) -> str:
    """A load statement."""
    return f"load({', '.join(map(value, (label, *names)))})\n"


NET = "any_network_name"  # stands for a network's name in the question, and {net} for it in what is written
_BEGIN, _END = "#include <...> search starts here:", "End of search list."
FILES = "board_files"  # where the files of boards that are not buildtool's own are linked to


class Boards:
    """The boards of a workspace. `code`: the repository that has the tool's own code."""

    def __init__(self, code: str) -> None:
        self._code = f"@{code}//:"
        self._client = Client()
        self._names: dict[str, str] = {}  # as asked for -> as its targets are called
        self._build: list[str] = []
        self._toolchains: list[str] = []
        self._native: list[str] = []

    def add(self, asked: str, path: str, toolchain: str) -> None:
        """Adds a board by name, or by label; the label's file is at `path`."""
        if asked in self._names:
            return
        request = {"kind": "describe", "board": path or asked, "model": f"{NET}.tflite", "name": NET}
        answer: Any = self._client.request(request | ({"toolchain": toolchain} if toolchain else {}))
        name = self._names[asked] = self._plain(answer["board"], asked)
        self._build.append(self._board(name, path or asked, answer))
        if answer["script"] is None:
            self._native.append(name)
        else:
            self._toolchains.append(self._toolchain(name, answer))

    def options(self) -> str:
        """What the macro has to know of the table of options, and of the boards."""
        found = options_of("emit", options.Group.PLANNING, options.Group.BUILT)
        values = {
            "OPTIONS": {o.name: o.help for o in found if o.suffixes is None},
            "FILE_OPTIONS": {o.name: o.help for o in found if o.suffixes is not None},
            "FLAGS": {o.name: o.flagged for o in found},
            "MODEL_SUFFIXES": options.MODEL_SUFFIXES,
            "BOARDS": self._names,
        }
        head = '"""Written by buildtool: options of planning, boards, endings of models."""\n'
        return head + "".join(f"{name} = {value(what)}\n" for name, what in values.items())

    def build(self) -> str:
        """The package //boards."""
        rules = load("//:library.bzl", "buildtool_board", "buildtool_sources")
        setting = call("constraint_setting", name="board")
        return "\n".join([rules, setting, *self._build, *self._currents()])

    def toolchains(self) -> str:
        """The package //toolchains."""
        return "\n".join([load("//:toolchain.bzl", "buildtool_cc_toolchain"), *self._toolchains])

    # ---- parts ---------------------------------------------------------------------------------------

    def _plain(self, name: str, asked: str) -> str:
        """A name for targets: the board's own, unless Bazel or another board has something against it."""
        if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", name) and name not in self._names.values():
            return name
        digest = hashlib.sha256(asked.encode(errors="surrogateescape")).hexdigest()[:8]
        return f"{re.sub(r'[^a-zA-Z0-9]+', '_', name).strip('_')}_{digest}"

    def _board(self, name: str, given: str, answer: answers.DescribeAnswer) -> str:
        network = answer["network"]
        assert network is not None  # it was asked for with a model
        groups = {group["name"]: group for group in answer["groups"]}
        own = groups.pop("network")["sources"]
        argument, files = self._given(name, given, answer)
        native = answer["script"] is None
        words = answer["commands"]["validate"]

        def templates(names: Iterable[str]) -> list[str]:
            return [name.replace(NET, "{net}") for name in names]

        weights, plan = templates([network["weights"], network["plan"]])
        parts = [
            call("constraint_value", name=f"{name}.constraint", constraint_setting=":board"),
            call("config_setting", name=f"is_{name}", constraint_values=[f":{name}.constraint"]),
            call(
                "platform",
                name=name,
                parents=["@local_config_platform//:host"] if native else None,
                constraint_values=[f":{name}.constraint"],
            ),
            call(
                "buildtool_board",
                name=f"{name}.board",
                board=argument,
                files=files,
                emitted=templates(network["emitted"]),
                sources=templates(source["file"]["path"] for source in own if not source["reads"]),
                reading=templates(source["file"]["path"] for source in own if source["reads"]),
                reads=templates(place["path"] for source in own for place in source["reads"]),
                weights=weights,
                plan=plan,
                validate=[word if isinstance(word, str) else f"{{{word['slot']}}}" for word in words],
                copts=_flags(answer),
                kernels=f":{name}.kernels",
                native=native or None,
            ),
        ]
        for group in groups.values():
            parts += self._group(name, group, answer)
        return "".join(parts)

    def _given(self, name: str, given: str, answer: answers.DescribeAnswer) -> tuple[str, list[str]]:
        """The argument of --board, and the labels of the files that it needs."""
        paths = [_path(answer, place) for place in answer["depends"]]
        inside = [self._code + link for path in paths if (link := find_below_links(path))]
        outside = [path for path in paths if not find_below_links(path)]
        if not outside:
            return given, sorted(set(inside))
        top = Path(os.path.commonpath([path.parent for path in outside]))
        links = {path: f"{FILES}/{name}/{path.relative_to(top).as_posix()}" for path in outside}
        for path, link in links.items():
            Path(link).parent.mkdir(parents=True, exist_ok=True)
            if not Path(link).is_symlink():
                Path(link).symlink_to(path)
        main = links.get(Path(given).resolve(), "")
        return (f"{{own}}/{main}" if main else given), sorted({*inside, *(f"//:{x}" for x in links.values())})

    def _group(self, name: str, group: answers.SourceGroup, answer: answers.DescribeAnswer) -> list[str]:
        """A group as a library; sources that need an emitted header are listed beside one of headers."""
        sources = [
            self._code + require_below_links(_path(answer, source["file"])) for source in group["sources"]
        ]
        own = [place for place in group["includes"] if place["root"] in answer["roots"]]
        includes = [f"{CODE}/{require_below_links(_path(answer, place))}" for place in own]
        library = f"{name}.{group['name']}"
        found = []
        if not group["shared"]:
            found.append(call("filegroup", name=f"{library}_sources", srcs=sources))
            sources = []
        found.append(
            call(
                "buildtool_sources",
                name=library,
                srcs=sources,
                code=f"{self._code}code",
                hdrs=[f"{self._code}headers"],
                includes=list(dict.fromkeys(includes)),
                copts=_flags(answer),
                alwayslink=group["name"] in answer["image"] or None,
            )
        )
        return found

    def _currents(self) -> Iterable[str]:
        """Names for what belongs to the board of the platform."""
        first = self._native[0] if self._native else ""
        for part in ("board", "kernels", "startup", "harness", "harness_sources"):
            choices = {f":is_{name}": f":{name}.{part}" for name in self._names.values()}
            if first:
                choices["//conditions:default"] = f":{first}.{part}"
            said = "the platform is of no board: say --platforms=@buildtool//boards:NAME"
            chosen = Code(f"select({value(choices)}, no_match_error = {value(said)})")
            yield call("alias", name=part if part != "board" else "current", actual=chosen)

    def _toolchain(self, name: str, answer: answers.DescribeAnswer) -> str:
        tools, script = answer["tools"], answer["script"]
        assert script is not None

        def portable(word: str) -> str:
            """A flag with its folder relative to the repository of the tool's code."""
            at = next((word.find(root) for root in answer["roots"].values() if root in word), -1)
            return word if at < 0 else f"{word[:at]}{CODE}/{require_below_links(Path(word[at:]))}"

        target = Path("toolchains", f"{name}.ld")
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(script["data"])
        return call(
            "buildtool_cc_toolchain",
            name=name,
            cc=tools["cc"],
            ar=tools["ar"],
            compile_flags=[*map(portable, tools["cflags"]), *names_as_given(tools["cc"])],
            link_flags=[*tools["ldflags"], f"{script['flag']}./{{own}}/{target.as_posix()}"],
            script=f":{target.name}",
            code=f"{self._code}code",
            headers=f"{self._code}headers",
            folders=builtin_folders(tools["cc"], tools["cflags"], answer["roots"].values()),
            board=f"//boards:{name}.constraint",
        )


def _path(answer: answers.DescribeAnswer, place: answers.Place) -> Path:
    return Path(answer["roots"].get(place["root"], ""), place["path"])


def _flags(answer: answers.DescribeAnswer) -> list[str]:
    """What any compiler needs beside its own flags."""
    tools = answer["tools"]
    return [*tools["exact"], *(f"-D{name}" for name in tools["defines"])]


# ---- compilers: where their headers are, and how one is kept from following links ---------------------


def builtin_folders(cc: str, flags: Sequence[str], but: Iterable[str]) -> list[str]:
    """The folders that `cc` with these flags looks into; those below the folders `but` are left out."""
    done = _run([cc, *flags, "-E", "-v", "-xc", "/dev/null", "-o", "/dev/null"])
    listed = done.stderr.partition(_BEGIN)[2].partition(_END)[0].splitlines()
    ours = tuple(f"{folder}/" for folder in but)
    found = [line.strip() for line in listed if line.strip() and not line.strip().startswith(ours)]
    # Bazel wants no "..", and compilers name a file also behind its links.
    return list(
        dict.fromkeys(way(folder) for folder in found for way in (os.path.normpath, os.path.realpath))
    )


def names_as_given(cc: str) -> list[str]:
    """The flag that keeps `cc` from resolving links in names of headers: Bazel knows the links only."""
    flag = "-fno-canonical-system-headers"
    done = _run([cc, flag, "-Werror", "-fsyntax-only", "-xc", "/dev/null"])
    return [] if done.returncode else [flag]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )


_RULES = ("defs.bzl", "library.bzl", "network.bzl", "tool.bzl", "toolchain.bzl", "validation.bzl")
_PUBLIC = 'package(default_visibility = ["//visibility:public"])\n'


def main(words: list[str]) -> int:
    """Answers one question; the exit status."""
    question = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    try:
        if question["what"] == "code":
            _code()
        else:
            _boards(question)
    except BuildtoolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _code() -> None:
    """The repository of the tool's own code."""
    for name, folder in packages().items():
        Path(name).symlink_to(folder)
    _write("files.txt", "".join(f"{name}\n" for name in files_to_watch()))
    _write("environment.txt", "".join(f"{line}\n" for line in _environment()))
    files = Code('glob(["**"], exclude = ["**/__pycache__/**", "question.json"])')
    headers = Code('glob(["**/*.h"])')
    _write(
        "BUILD.bazel",
        _PUBLIC
        + "exports_files(glob(['**']))\n"
        + call("filegroup", name="code", srcs=files)
        + call("filegroup", name="headers", srcs=headers),
    )


def _environment() -> list[str]:
    """Python and the packages that the tool imports, by version: each action depends on these words."""
    found = distribution(DISTRIBUTION)
    needs = [need for need in found.requires or () if ";" not in need]
    names = sorted({re.match(r"[\w.-]*", need)[0] for need in needs})  # type: ignore[index]
    return [f"python {sys.version}", *(f"{name} {distribution(name).version}" for name in names)]


def _boards(question: dict[str, Any]) -> None:
    """The repository of the rules and the boards."""
    found = Boards(question["code"])
    for board in question["boards"]:
        found.add(board["asked"], board["path"], question["toolchain"])
    for name in _RULES:
        Path(name).symlink_to(RULES / name)
    code = f"@{question['code']}//"
    top = [
        load(":tool.bzl", "buildtool_tool", "worker_flag"),
        'exports_files(glob(["**"]))\n',
        call("worker_flag", name="worker", build_setting_default=False),
        call("buildtool_tool", name="tool", python=question["python"], code=f"{code}:code"),
    ]
    _write("BUILD.bazel", _PUBLIC + "".join(top))
    _write("options.bzl", found.options())
    _write("boards/BUILD.bazel", _PUBLIC + found.build())
    _write("toolchains/BUILD.bazel", _PUBLIC + found.toolchains())


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
