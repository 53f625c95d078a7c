"""The program that the repository rules of rules/buildtool.bzl run, as `python -m`; its argument is a file.

The file has a question as JSON. The program writes the answer into the working folder: BUILD files, and
symbolic links to the tool's own files.
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
CODE = "{code}"  # in a path: the folder of the code's repository, which only Bazel knows
KERNELS = "buildtool_kernels"  # its import name; in a checkout its folder has another name


@functools.cache
def packages() -> dict[str, Path]:
    """Returns the folder of each package of the code, by the package's import name."""
    folders = {}
    for folder in map(Path, code_folders()):
        is_kernels = (folder / "include" / "nn.h").is_file() and folder.name == "kernels"
        folders[KERNELS if is_kernels else folder.name] = folder.resolve()
    return folders


def files_to_watch() -> list[str]:
    """Returns the files that decide the tool's answers, and the rules.

    Each path begins at the symbolic link to a package.
    """
    files = [*map(Path, code_files()), *RULES.glob("*.bzl")]
    return sorted(link for path in files if (link := find_below_links(path)))


def find_below_links(path: Path) -> str:
    """Returns the path of a file or folder below the symbolic link to its package; "" if it is in no
    package.
    """
    real = path.resolve()
    for name, folder in packages().items():
        if real.is_relative_to(folder):
            below = real.relative_to(folder).as_posix()
            return name if below == "." else f"{name}/{below}"
    return ""


def require_below_links(path: Path) -> str:
    """Returns the path that `find_below_links` finds. Raises BuildtoolError if the file is in no package."""
    if link := find_below_links(path):
        return link
    raise BuildtoolError(
        "the rules for Bazel build only from buildtool's own folders and those of plugins",
        path=str(path),
        hint="make it part of a package that offers boards",
    )


# ---- text ----------------------------------------------------------------------------------------------


class Code(str):
    """A Starlark expression, which `value` writes without quotes."""

    __slots__ = ()


def value(item: object) -> str:
    """Returns a value in Starlark. It may be text, a whole number, None, or a list or map of such values."""
    if isinstance(item, Code):
        return item
    if isinstance(item, str):
        return '"' + "".join(_ESCAPES.get(letter, letter) for letter in item) + '"'
    if isinstance(item, Mapping):
        return "{" + ", ".join(f"{value(key)}: {value(member)}" for key, member in item.items()) + "}"
    if isinstance(item, list | tuple):
        return "[" + ", ".join(map(value, item)) + "]"
    return repr(item)


def call(rule: str, **attributes: object) -> str:
    """Returns a call of a rule, with one attribute per line. Attributes that are None are left out."""
    lines = [f"    {name} = {value(item)},\n" for name, item in attributes.items() if item is not None]
    return f"{rule}(\n{''.join(lines)})\n"


def load(label: str, *names: str) -> str:
    """Returns a Starlark statement that loads `names` from the file `label`."""
    return f"load({', '.join(map(value, (label, *names)))})\n"


NET = "any_network_name"  # stands for a network's name in the request; it becomes {net} in written files
_BEGIN, _END = "#include <...> search starts here:", "End of search list."
FILES = "board_files"  # the folder of links to files of boards that are not buildtool's own


class Boards:
    """The boards of a workspace. `code` is the name of the repository with the tool's own code."""

    def __init__(self, code: str) -> None:
        self._code = f"@{code}//:"
        self._client = Client()
        self._names: dict[str, str] = {}  # name or label in the workspace -> name of its targets
        self._build: list[str] = []
        self._toolchains: list[str] = []
        self._native: list[str] = []

    def add(self, board: str, path: str, toolchain: str) -> None:
        """Adds a board, which is a name or the label of a board's file.

        `path` is the path of that file ("" for a name). `toolchain` is the compiler's name ("": the board's
        first).
        """
        if board in self._names:
            return
        request = {"kind": "describe", "board": path or board, "model": f"{NET}.tflite", "name": NET}
        answer: Any = self._client.request(request | ({"toolchain": toolchain} if toolchain else {}))
        name = self._names[board] = self._target_name(answer["board"], board)
        self._build.append(self._board(name, path or board, answer))
        if answer["script"] is None:
            self._native.append(name)
        else:
            self._toolchains.append(self._toolchain(name, answer))

    def options(self) -> str:
        """Returns the text of options.bzl, which has the options and boards that the macro needs."""
        planning = options_of("emit", options.Group.PLANNING, options.Group.FIELD, options.Group.BUILT)
        values = {
            "OPTIONS": {o.name: o.help for o in planning if o.suffixes is None},
            "FILE_OPTIONS": {o.name: o.help for o in planning if o.suffixes is not None},
            "FLAGS": {o.name: o.flagged for o in planning},
            "MODEL_SUFFIXES": options.MODEL_SUFFIXES,
            "BOARDS": self._names,
        }
        head = '"""Written by buildtool: options of planning, boards, endings of models."""\n'
        return head + "".join(f"{name} = {value(item)}\n" for name, item in values.items())

    def build(self) -> str:
        """Returns the BUILD file of the package //boards."""
        rules = load("//:library.bzl", "buildtool_board", "buildtool_sources")
        setting = call("constraint_setting", name="board")
        return "\n".join([rules, setting, *self._build, *self._currents()])

    def toolchains(self) -> str:
        """Returns the BUILD file of the package //toolchains."""
        return "\n".join([load("//:toolchain.bzl", "buildtool_cc_toolchain"), *self._toolchains])

    # ---- parts ---------------------------------------------------------------------------------------

    def _target_name(self, name: str, board: str) -> str:
        """Returns a name for a board's targets.

        It is the board's own name if Bazel allows it and no other board has it.
        """
        if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", name) and name not in self._names.values():
            return name
        digest = hashlib.sha256(board.encode(errors="surrogateescape")).hexdigest()[:8]
        return f"{re.sub(r'[^a-zA-Z0-9]+', '_', name).strip('_')}_{digest}"

    def _board(self, name: str, board: str, answer: answers.DescribeAnswer) -> str:
        """Returns the rules of a board: its platform, its facts, and its libraries."""
        native = answer["script"] is None
        parts = [
            call("constraint_value", name=f"{name}.constraint", constraint_setting=":board"),
            call("config_setting", name=f"is_{name}", constraint_values=[f":{name}.constraint"]),
            call(
                "platform",
                name=name,
                parents=["@local_config_platform//:host"] if native else None,
                constraint_values=[f":{name}.constraint"],
            ),
            self._facts(name, board, answer),
        ]
        for group in answer["groups"]:
            parts += self._group(name, group, answer) if group["name"] != "network" else []
        return "".join(parts)

    def _facts(self, name: str, board: str, answer: answers.DescribeAnswer) -> str:
        """Returns the rule with the facts of a board that the rules of networks need."""
        network = answer["network"]
        assert network is not None  # the request has a model
        sources = {group["name"]: group["sources"] for group in answer["groups"]}
        own, kernels = sources["network"], sources["kernels"]
        argument, files = self._board_argument(name, board, answer)

        def templates(names: Iterable[str]) -> list[str]:
            return [name.replace(NET, "{net}") for name in names]

        weights, plan, called = templates([network["weights"], network["plan"], network["kernels"]])
        words = answer["commands"]["validate"]
        return call(
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
            called=called,
            headers=f":{name}.kernels",
            kernels={self._label(answer, source): source["object"] for source in kernels},
        )

    def _board_argument(self, name: str, board: str, answer: answers.DescribeAnswer) -> tuple[str, list[str]]:
        """Returns the argument of --board, and the labels of the files that it needs."""
        paths = [_path(answer, place) for place in answer["depends"]]
        inside = [self._code + link for path in paths if (link := find_below_links(path))]
        outside = [path for path in paths if not find_below_links(path)]
        if not outside:
            return board, sorted(set(inside))
        top = Path(os.path.commonpath([path.parent for path in outside]))
        links = {path: f"{FILES}/{name}/{path.relative_to(top).as_posix()}" for path in outside}
        for path, link in links.items():
            Path(link).parent.mkdir(parents=True, exist_ok=True)
            if not Path(link).is_symlink():
                Path(link).symlink_to(path)
        main = links.get(Path(board).resolve(), "")
        return (f"{{own}}/{main}" if main else board), sorted({*inside, *(f"//:{x}" for x in links.values())})

    def _label(self, answer: answers.DescribeAnswer, source: answers.Source) -> str:
        return self._code + require_below_links(_path(answer, source["file"]))

    def _group(self, name: str, group: answers.SourceGroup, answer: answers.DescribeAnswer) -> list[str]:
        """Returns the rules that make a library of a group of sources.

        Sources that need an emitted header are put into a filegroup instead, because each network compiles
        them itself. The library of the kernels has only headers, because each network compiles the kernels
        that it calls.
        """
        sources = [self._label(answer, source) for source in group["sources"]]
        own = [place for place in group["includes"] if place["root"] in answer["roots"]]
        includes = [f"{CODE}/{require_below_links(_path(answer, place))}" for place in own]
        library = f"{name}.{group['name']}"
        rules = []
        if not group["shared"]:
            rules.append(call("filegroup", name=f"{library}_sources", srcs=sources))
        is_compiled = group["shared"] and group["name"] != "kernels"
        rules.append(
            call(
                "buildtool_sources",
                name=library,
                srcs=sources if is_compiled else [],
                code=f"{self._code}code",
                hdrs=[f"{self._code}headers"],
                includes=list(dict.fromkeys(includes)),
                copts=_flags(answer),
                alwayslink=group["name"] in answer["image"] or None,
            )
        )
        return rules

    def _currents(self) -> Iterable[str]:
        """Yields aliases that stand for the targets of the board that the platform selects."""
        first = self._native[0] if self._native else ""
        for part in ("board", "startup", "harness", "harness_sources"):
            choices = {f":is_{name}": f":{name}.{part}" for name in self._names.values()}
            if first:
                choices["//conditions:default"] = f":{first}.{part}"
            error = "the platform is not a board: give --platforms=@buildtool//boards:NAME"
            actual = Code(f"select({value(choices)}, no_match_error = {value(error)})")
            yield call("alias", name=part if part != "board" else "current", actual=actual)

    def _toolchain(self, name: str, answer: answers.DescribeAnswer) -> str:
        tools, script = answer["tools"], answer["script"]
        assert script is not None

        def portable(word: str) -> str:
            """Returns a flag in which folders are relative to the repository of the tool's code."""
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
    """Returns the flags that every compiler for the board needs in addition to its own flags."""
    tools = answer["tools"]
    return [*tools["exact"], *(f"-D{name}" for name in tools["defines"])]


# ---- compilers: the folders of their headers, and the flag against resolving links --------------------


def builtin_folders(cc: str, flags: Sequence[str], excluded: Iterable[str]) -> list[str]:
    """Returns the folders in which `cc` with these flags looks for headers, except those below `excluded`."""
    process = _run([cc, *flags, "-E", "-v", "-xc", os.devnull, "-o", os.devnull])
    lines = process.stderr.partition(_BEGIN)[2].partition(_END)[0].splitlines()
    excluded_prefixes = tuple(f"{folder}/" for folder in excluded)
    folders = [
        line.strip() for line in lines if line.strip() and not line.strip().startswith(excluded_prefixes)
    ]
    # Bazel does not accept "..", and compilers name a file also by its real path.
    return list(
        dict.fromkeys(path(folder) for folder in folders for path in (os.path.normpath, os.path.realpath))
    )


def names_as_given(cc: str) -> list[str]:
    """Returns the flag that keeps `cc` from resolving symbolic links in the names of headers.

    Bazel only knows the links. Returns [] if `cc` does not have such a flag.
    """
    flag = "-fno-canonical-system-headers"
    process = _run([cc, flag, "-Werror", "-fsyntax-only", "-xc", os.devnull])
    return [] if process.returncode else [flag]


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
    """Answers the question in the file `words[0]`. Returns the exit status."""
    question = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    try:
        if question["what"] == "code":
            _code()
        else:
            _boards(question)
    except BuildtoolError as error:
        print(error.message(*options.BAZEL), file=sys.stderr)
        return 1
    return 0


def _code() -> None:
    """Writes the repository of the tool's own code."""
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
    """Returns the versions of Python and of the packages that the tool imports.

    All actions depend on them.
    """
    needs = [need for need in distribution(DISTRIBUTION).requires or () if ";" not in need]
    names = sorted({re.match(r"[\w.-]*", need)[0] for need in needs})  # type: ignore[index]
    return [f"python {sys.version}", *(f"{name} {distribution(name).version}" for name in names)]


def _boards(question: dict[str, Any]) -> None:
    """Writes the repository of the rules and the boards."""
    boards = Boards(question["code"])
    for board in question["boards"]:
        boards.add(board["asked"], board["path"], question["toolchain"])
    for name in _RULES:
        Path(name).symlink_to(RULES / name)
    code = f"@{question['code']}//"
    top = [
        load(":tool.bzl", "buildtool_tool", "cache_url_flag", "worker_flag"),
        'exports_files(glob(["**"]))\n',
        call("worker_flag", name="worker", build_setting_default=False),
        call("cache_url_flag", name="cache_url", build_setting_default=""),
        call("buildtool_tool", name="tool", python=question["python"], code=f"{code}:code"),
    ]
    _write("BUILD.bazel", _PUBLIC + "".join(top))
    _write("options.bzl", boards.options())
    _write("boards/BUILD.bazel", _PUBLIC + boards.build())
    _write("toolchains/BUILD.bazel", _PUBLIC + boards.toolchains())


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
