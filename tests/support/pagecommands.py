"""The commands in the pages' code blocks, one by one, without the notation of a synopsis.

    buildtool plan MODEL [--ram 64K ...]       # a comment    two commands: without and with the brackets
    buildtool ops | boards                                    two commands
    $ buildtool plan ds_cnn --board mine.toml                 in a session, `$` lines are the commands
    error: ...                                                this one fails
    - run: buildtool diff old.json new.json >> "$SUMMARY"     a step of a CI job

What stands in marks (`<!-- figures -->`) is left out: benchmarks/pages.py runs it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from buildtool.fronts.cli.commands import COMMANDS

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/README.md")
# Programs whose lines are commands, in every code block. In sessions all `$` lines are commands.
OURS = ("buildtool", "./dev", "scons", "cmake", "bazel", "pytest", "python")
_LINE = re.compile(rf"(?:- )?(?:run: )?(?:[A-Z_]+=\S+ )*((?:{'|'.join(map(re.escape, OURS))}) .*|scons)$")
_SHELLS = ("", "sh", "bash", "console", "shell", "text", "yaml")


@dataclass(frozen=True)
class Command:
    """A command of a page.

    block: the first line of its code block.
    into: the file that its output goes to.
    fails: whether the page shows an error of it.
    """

    page: str
    block: int
    line: int
    words: tuple[str, ...]
    into: str = ""
    fails: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def collect(root: Path) -> list[Command]:
    paths = (path for pattern in PAGES for path in sorted(root.glob(pattern)))
    return [command for path in paths for command in commands_of(path, root)]


def commands_of(path: Path, root: Path) -> Iterator[Command]:
    text = re.sub(
        r"<!-- figures?\b.*?<!-- end -->",
        lambda mark: "\n" * mark[0].count("\n"),
        path.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    for block in _blocks(text):
        for number, line, fails in _lines(block):
            for words, into in _expand(line):
                yield Command(path.relative_to(root).as_posix(), block[0][0], number, words, into, fails)


def _blocks(text: str) -> Iterator[list[tuple[int, str]]]:
    """Yields the code blocks: their lines with their numbers. Lines that end with a backslash are joined."""
    block: list[tuple[int, str]] = []
    fence, language = "", ""
    for number, line in enumerate(text.split("\n"), 1):
        if mark := re.match(r"\s*(```+)(.*)", line):
            fence, language = ("", "") if fence else (mark[1], mark[2].strip())
        is_code = not mark and (language in _SHELLS if fence else line.startswith("    "))
        if is_code and block and block[-1][1].endswith("\\"):
            block[-1] = (block[-1][0], f"{block[-1][1][:-1].rstrip()} {line.strip()}")
        elif is_code:
            block.append((number, line.strip()))
        elif block and (line.strip() or fence):
            yield block
            block = []
    if block:
        yield block


def _lines(block: list[tuple[int, str]]) -> Iterator[tuple[int, str, bool]]:
    """Yields the command lines of a block, and whether an error is shown below them."""
    starts = [at for at, (_, line) in enumerate(block) if line.startswith("$ ")]
    for at, end in zip(starts, [*starts[1:], len(block)], strict=False):
        shown = [line for _, line in block[at + 1 : end]]
        yield block[at][0], block[at][1][2:], any(re.search(r"\berror: ", line) for line in shown)
    if not starts:
        for number, line in block:
            if found := _LINE.match(line):
                yield number, found[1], False


def _expand(line: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the commands of a line: words, and the file that the output goes to."""
    line = re.sub(r"\s+#\s.*$", "", line)
    bare = re.sub(r" ?\[[^][]*\](?:\.\.\.)?", "", line)
    full = re.sub(r"\[([^][]*?)(?: \.\.\.)?\](?:\.\.\.)?", r"\1", line)
    for form in dict.fromkeys((bare, full)):
        for part in form.split(" && "):
            command, _, into = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", part).partition(" >")
            for words in _alternatives(command):
                yield tuple(words), into.strip("> ").strip('"')


def _alternatives(command: str) -> Iterable[list[str]]:
    """Returns the commands that `a b | c` stands for; another command of ours replaces the first one."""
    first, *others = command.split(" | ")
    first = re.sub(r"\$\([^)]*\)", lambda inner: inner[0].replace(" ", "\0"), first)  # one word
    words = [word.replace("\0", " ") for word in shlex.split(re.sub(r"^\./dev (?=[a-z])", "", first))]
    return [words, *([words[0], o] if o in COMMANDS else [*words[:-1], o] for o in map(str.strip, others))]
