"""What the repository rules are told: options of the one table, kernels and flags of `describe`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from needs import needs_tool
from paths import ROOT

from buildtool import options
from buildtool.api.requests import options_of
from buildtool.fronts.bazel import repository
from buildtool.fronts.bazel.repository import RULES, builtin_folders, call, names_as_given, value

EXAMPLE = ROOT / "examples/bazel_firmware"
DERIVED = 'extends = "cortex-m4"\ntitle = "mine"\n'


def asked(folder: Path, **question: object) -> subprocess.CompletedProcess[str]:
    """What the rules run, in a repository's folder."""
    (folder / "question.json").write_text(json.dumps({"python": sys.executable, **question}))
    command = [sys.executable, "-P", "-m", "buildtool.fronts.bazel.repository", "question.json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def loaded(path: Path) -> dict[str, object]:
    """The names that a .bzl file of constants sets: such files are Python, too."""
    found: dict[str, object] = {}
    exec(path.read_text(), {}, found)
    return found


def test_the_example_has_the_repository_rules_as_they_are_printed() -> None:
    command = [sys.executable, "-m", "buildtool.fronts.bazel"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    assert printed == (RULES / "buildtool.bzl").read_bytes() == (EXAMPLE / "buildtool.bzl").read_bytes()


def test_values_are_written_as_starlark_reads_them() -> None:
    text = 'a "b" \\ $c\n\té'
    assert eval(value({"x": [text, 1, True, None]})) == {"x": [text, 1, True, None]}
    assert call("rule", name="n", srcs=[], gone=None) == 'rule(\n    name = "n",\n    srcs = [],\n)\n'


def test_every_file_that_the_digest_is_of_is_watched_and_every_rule() -> None:
    watched = set(repository.files_to_watch())
    assert {"buildtool/fronts/cli/main.py", "buildtool_kernels/reference/catalogue.toml"} <= watched
    assert {f"buildtool/fronts/bazel/rules/{path.name}" for path in RULES.glob("*.bzl")} <= watched
    assert not any(name.startswith(("/", "..")) for name in watched)


def test_folders_of_a_compiler_are_those_that_it_searches(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    listed = "#include <...> search starts here:\n /ours/x\n /no dir/gcc/../include\nEnd of search list."
    compiler.write_text(f"#!/bin/sh\ncat >&2 <<'X'\n{listed}\nX\n")
    compiler.chmod(0o755)
    assert builtin_folders(str(compiler), [], ["/ours"]) == ["/no dir/include"]


@pytest.mark.slow
def test_the_answer_of_describe_is_written_down_for_each_board(tmp_path: Path) -> None:
    mine = tmp_path / "my board.toml"
    mine.write_text(DERIVED)
    repository = tmp_path / "repository"
    repository.mkdir()
    boards = [{"asked": "cortex-m4", "path": ""}, {"asked": "//:my board.toml", "path": str(mine)}]
    done = asked(repository, what="boards", code="c", boards=boards, toolchain="")
    assert done.returncode == 0, done.stderr
    table = loaded(repository / "options.bzl")
    groups = (options.Group.PLANNING, options.Group.FIELD)
    known = {option.name for option in options_of("emit", *groups)}
    assert {*table["OPTIONS"], *table["FILE_OPTIONS"]} == known | {"plan"} == set(table["FLAGS"])
    assert list(table["BOARDS"]) == ["cortex-m4", "//:my board.toml"]
    own = table["BOARDS"]["//:my board.toml"]
    link = repository / f"board_files/{own}/my board.toml"
    assert link.resolve() == mine.resolve()
    build = (repository / "boards/BUILD.bazel").read_text()
    assert f'"{{own}}/board_files/{own}/my board.toml"' in build
    assert '"@c//:buildtool_kernels/cortex_m_dsp/nn_add_s8_dsp.c"' in build
    assert str(ROOT) not in build + (repository / "toolchains/BUILD.bazel").read_text()

    refused = asked(repository, what="boards", code="c", boards=[{"asked": "x7", "path": ""}], toolchain="")
    assert refused.returncode == 1 and "x7" in refused.stderr and "Traceback" not in refused.stderr


def test_a_compiler_is_given_the_flag_for_links_if_it_knows_it() -> None:
    assert names_as_given(needs_tool("arm-none-eabi-gcc")) == ["-fno-canonical-system-headers"]
    assert names_as_given(needs_tool("clang")) == []
