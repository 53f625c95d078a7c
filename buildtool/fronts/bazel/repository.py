"""What the repository rules of rules/buildtool.bzl run, as `python -m`, with a file in its only argument.

The file holds a question as JSON. What answers it is written to the working folder: BUILD files, and links to
the tool's own files.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from buildtool import DISTRIBUTION
from buildtool.client import BuildtoolError
from buildtool.fronts.bazel import boards, labels

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
    for name, folder in labels.packages().items():
        Path(name).symlink_to(folder)
    _write("files.txt", "".join(f"{name}\n" for name in labels.watched()))
    _write("environment.txt", "".join(f"{line}\n" for line in _environment()))
    files = labels.Code('glob(["**"], exclude = ["**/__pycache__/**", "question.json"])')
    headers = labels.Code('glob(["**/*.h"])')
    _write(
        "BUILD.bazel",
        _PUBLIC
        + "exports_files(glob(['**']))\n"
        + labels.call("filegroup", name="code", srcs=files)
        + labels.call("filegroup", name="headers", srcs=headers),
    )


def _environment() -> list[str]:
    """Python and the packages that the tool imports, by version: each action depends on these words."""
    found = distribution(DISTRIBUTION)
    needs = [need for need in found.requires or () if ";" not in need]
    names = sorted({re.match(r"[\w.-]*", need)[0] for need in needs})  # type: ignore[index]
    return [f"python {sys.version}", *(f"{name} {distribution(name).version}" for name in names)]


def _boards(question: dict[str, Any]) -> None:
    """The repository of the rules and the boards."""
    found = boards.Boards(question["code"])
    for board in question["boards"]:
        found.add(board["asked"], board["path"], question["toolchain"])
    for name in _RULES:
        Path(name).symlink_to(labels.RULES / name)
    _write("BUILD.bazel", _top(question))
    _write("options.bzl", found.options())
    _write("boards/BUILD.bazel", _PUBLIC + found.build())
    _write("toolchains/BUILD.bazel", _PUBLIC + found.toolchains())


def _top(question: dict[str, Any]) -> str:
    code = f"@{question['code']}//"
    return "".join(
        [
            _PUBLIC,
            labels.load(":tool.bzl", "buildtool_tool", "worker_flag"),
            'exports_files(glob(["**"]))\n',
            labels.call("worker_flag", name="worker", build_setting_default=False),
            labels.call("buildtool_tool", name="tool", python=question["python"], code=f"{code}:code"),
        ]
    )


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
