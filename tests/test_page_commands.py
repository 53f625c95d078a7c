"""The commands in the pages' code blocks work: quick ones run, of the other ones the arguments are parsed.

Small files stand for placeholders and for a reader's files. Marked figures, tutorials and transcripts are
left out, because other tests run them. A command that no rule covers fails.
"""

import argparse
import contextlib
import io
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from needs import needs_tool
from pagecommands import Command, collect, commands_of
from pagereader import BOARDS, Reader
from paths import ROOT
from programs import SCONS, copied, ran
from transcript import parse as parse_transcript

from buildtool.api import requests
from buildtool.base.errors import BuildtoolError
from buildtool.client.files import Located
from buildtool.fronts.cli import arguments
from buildtool.fronts.cli.commands import COMMANDS, load, request_of
from buildtool.fronts.cmake.quoting import cmake_folder
from buildtool.target.registry import load_board

# Why commands do not run here, and how many they are at most. The numbers may only shrink.
PARSED = {
    "an attached board": (r"--on board|--wire|buildtool flash", 7),
    "waits until it is ended": (r"buildtool (?:debug|watch|daemon)", 10),
    "a package of 1 GB and more": (r"buildtool (?:quantize|split)", 8),
    "runs for ten seconds and more": (r"target check|front .*--hop|analyze mobilenetv2:", 4),
    "a plugin of the reader": (r"--board acme", 2),
    "a checkout of CMSIS-NN": (r"~/CMSIS-NN", 6),
    "other machines": (r"--scheduler", 1),
    "an example that is not in its folder here": (r"scons .*judge", 1),
    "a program that signs": (r"--sign", 1),
    "a file that the page shows": (r"--board mine.toml", 3),
    "two answers for a data set": (r"diff before.json after.json .*top1", 1),
    "a vendor's tools": (r"cmake -G Unix Makefiles", 1),
    "tensors of a certain network": (r"--outputs raw_", 1),
}
# Other programs, which only sessions show.
OTHERS = (
    "cd",
    "cp",
    "ctest",
    "git",
    "make",
    "mkdir",
    "mv",
    "pip",
    "qemu-system-arm",
    "xflash",
    "xmake",
    "xrun",
)
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(app C ASM)
find_package(buildtool 0.1 CONFIG REQUIRED)
if(CMAKE_CROSSCOMPILING)
  buildtool_add_network(wake_word MODEL ../net.tflite)
else()
  buildtool_add_network(wake_word MODEL ../net.tflite BOARD host)
endif()
"""


class ParsedError(Exception):
    """Raised in place of what a script does after it has parsed its arguments."""


def why_parsed(command):
    """Returns why a command is only parsed; "" if it runs."""
    return next((why for why, (pattern, _) in PARSED.items() if re.search(pattern, command.text)), "")


def complain(command, reader, *, runs):
    """Returns what is wrong with a command; "" if it is right. `runs`: whether it may run."""
    program = command.words[0]
    if program not in CHECKS:
        return "" if program in OTHERS else f"no rule covers {program}"
    try:
        return CHECKS[program](command, reader, runs and not why_parsed(command))
    except (BuildtoolError, AssertionError) as error:
        return str(error)


def complaints(commands, reader, *, runs):
    """Returns what is wrong with the commands, and where they are."""
    wrong = [(command, complain(command, reader, runs=runs)) for command in commands]
    return [f"{command}: {why}" for command, why in wrong if why]


def check_buildtool(command, reader, runs):
    if command.words[1] not in COMMANDS:
        return "" if command.words[1:] in (("--version",), ("--cmake-dir",)) else "there is no such command"
    for board in BOARDS if {"B", "..."}.intersection(command.words) else BOARDS[:1]:
        words = reader.fill(command.words[1:], board)
        args = arguments.parse(words)
        if why_parsed(command) and load(args.command).kind in requests.KINDS:
            requests.parse(Located(request_of(args)).request)
        if not runs:
            return ""
        reader.provide(words, command)
        status, out, errors = reader.run(words)
        if command.into and "$" not in command.into:
            (reader.folder / command.into).write_text(out)
        if (status != 0) == command.fails and status != 70:
            return ""
    return f"ends with {status}: {(errors or out)[-500:]}"


def check_script(command, reader, runs):
    """Parses the arguments of a script of benchmarks/ with the script's own parser; runs a module of ours."""
    is_module = command.words[1] == "-m"
    name, given = command.words[1 + is_module], list(command.words[2 + is_module :])
    if name.startswith("buildtool."):
        if runs:
            reader.provide((), command)
        done = ran(reader.folder, sys.executable, *command.words[1:]) if runs else None
        return done.stdout[-500:] if done and done.returncode else ""
    stem = name.replace(".", "/") if is_module else name.removesuffix(".py")
    path = next((p for p in (ROOT / f"{stem}.py", ROOT / stem / "__main__.py") if p.is_file()), None)
    if path is None:
        return f"there is no {name}"
    if "ArgumentParser" not in path.read_text(encoding="utf-8"):
        return f"{name} takes no arguments" if given else ""
    return parse_as_script(path, given)


def parse_as_script(path, given):
    """Parses arguments as a script does, and ends it there. Returns the parser's error."""
    parse_args = argparse.ArgumentParser.parse_args

    def stop(parser, *_):
        for action in parser._actions:
            action.choices = action.choices and [*action.choices, "NAME"]
        parse_args(parser, given)
        raise ParsedError

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as errors:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        patch.setattr(sys, "path", [str(path.parent), str(ROOT), *sys.path])
        try:
            runpy.run_path(str(path), run_name="__main__")
        except ParsedError:
            return ""
        except SystemExit:
            return errors.getvalue()[-500:]
    return f"{path.name} parsed no arguments"


def homes(names):
    """Returns the folders of the checkout whose SConstruct has variables with these names."""
    own = {option.name for option in requests.options_of("profile")} | {"sign", "image_version"}
    for path in (ROOT / "SConstruct", *sorted(ROOT.glob("examples/*/SConstruct"))):
        if own | set(re.findall(r'"(\w+)"', path.read_text())) >= set(names):
            yield path.parent
        own = set()


def check_scons(command, reader, runs):
    """Reads an SConstruct with these variables and targets, once for each set of them, and builds nothing."""
    names = [word.partition("=")[0] for word in command.words if re.match(r"\w+=", word)]
    home = next(homes(names), None)
    if home is None:
        return f"no SConstruct has the variables {names}"
    for word in command.words:
        if re.fullmatch(r"board=[\w-]+", word) and word != "board=B":
            load_board(word.removeprefix("board="))
    asked = (home, *(word for word in command.words if not word.startswith(("board=", "model="))))
    runs = runs and asked not in reader.asked
    reader.asked.add(asked)
    for board in (BOARDS if "board=B" in command.words else BOARDS[:1]) if runs else ():
        words = reader.fill(command.words[1:], board)
        reader.provide(words, command)
        if home == ROOT:
            place = (f"--file={ROOT}/SConstruct", f"--site-dir={ROOT}/site_scons")
        else:
            folder = reader.folder / home.name
            place = (f"--directory={folder if folder.is_dir() else copied(home.name, folder)}",)
            words = [re.sub(r"=(?=.*\.(?:tflite|wav)$)", "=../", word) for word in words]
        path = {"PYTHONPATH": f"{ROOT}:{ROOT}/plugins"}
        done = ran(reader.folder, *SCONS, "-n", *place, *words, environment=path)
        if done.returncode == 0:
            return ""
    return done.stdout[-500:] if runs else ""


def check_cmake(command, reader, runs):
    """Configures a project with a network."""
    if not runs or command.words[1] == "--build":
        return ""
    reader.provide(("net.tflite",), command)
    folder = reader.folder / "project"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(PROJECT)
    words = [word.replace("$(buildtool --cmake-dir)", str(cmake_folder())) for word in command.words[1:]]
    if "..." in words:
        words[words.index("...")] = f"-Dbuildtool_DIR={cmake_folder()}"
        words += ["-B", "build"]
    done = ran(folder, needs_tool("cmake"), *words)
    is_unused = "Manually-specified variables were not used" in done.stdout
    return done.stdout[-500:] if done.returncode or is_unused else ""


def check_pytest(command, _reader, _runs):
    gone = [word for word in command.words[1:] if word.startswith("tests") and not (ROOT / word).exists()]
    return f"there is no {gone[0]}" if gone else ""


def check_bazel(command, _reader, _runs):
    """Looks at the words alone: Bazel downloads what it needs."""
    verb, *labels = command.words[1:]
    assert verb in ("build", "test", "run", "query"), f"bazel has no command {verb}"
    return "" if all(re.match(r"//|:|--", label) for label in labels) else f"{labels} are not labels"


CHECKS = {
    "bazel": check_bazel,
    "buildtool": check_buildtool,
    "cmake": check_cmake,
    "pytest": check_pytest,
    "scons": check_scons,
    **dict.fromkeys(("python", "python3"), check_script),
    **dict.fromkeys(("ruff", "mypy"), lambda *_: ""),  # CI runs these
}


def shown():
    """Returns the commands of the pages that no other test runs."""
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    tutorials = {name for text in tests for name in re.findall(r'FirstProject\("([\w-]+\.md)"', text)}
    sessions = {
        one.text
        for path in (ROOT / "tests/transcripts").glob("*.txt")
        for one in parse_transcript(path.read_text(encoding="utf-8"))
    }
    found: dict[object, Command] = {}
    for command in collect(ROOT):
        if Path(command.page).name not in tutorials and command.text not in sessions:
            found.setdefault((command.words, command.into), command)
    return list(found.values())


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path)


def test_the_commands_of_the_pages_are_parsed(reader):
    assert len(shown()) > 100
    assert complaints(shown(), reader, runs=False) == []


@pytest.mark.slow
def test_the_quick_commands_of_the_pages_run(reader):
    wrong = complaints(shown(), reader, runs=True)
    assert not wrong, "\n".join(wrong)


def test_the_commands_that_do_not_run_become_fewer():
    reasons = [why_parsed(command) for command in shown()]
    for why, (_, limit) in PARSED.items():
        assert 0 < reasons.count(why) <= limit, f"{why}: {reasons.count(why)}"


def test_a_broken_command_is_found(tmp_path, reader):
    page = """
    buildtool plan MODEL --board B [--ram 64K ...]      # right
    buildtool plan MODEL --bord B
    buildtool plan MODEL --board B --ram sixty
    buildtool flash MODEL --board B --on board --wire tin:can
    buildtool zoo | bords
    buildtool plan THING --board B

```
$ frobnicate
$ buildtool plan MODEL --board B
error: the page says that it fails
$ buildtool plan MODEL --board none
error: unknown board
```

    python -m benchmarks.pages --alle
    python benchmarks/gone.py
    pytest tests/gone.py
    scons modle=MODEL
"""
    (tmp_path / "page.md").write_text(page)
    commands = list(commands_of(tmp_path / "page.md", tmp_path))
    assert len(commands) == 15
    wrong = {int(text.split(":")[1]) for text in complaints(commands, reader, runs=True)}
    assert {command.line for command in commands} - wrong == {2, 13}
