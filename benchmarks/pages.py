"""Writes the figures of README and docs from the outputs of commands.

    python -m benchmarks.pages            # runs the quick commands, and says which pages differ (status 1)
    python -m benchmarks.pages --all      # the slow ones, too: before a release
    python -m benchmarks.pages --write    # keeps what they print, and writes the pages; also --all, or NAMES

Each docs/figures/NAME.txt has a command and what it printed:

    $ buildtool plan ds_cnn --board cortex-m4
    # pace: slow                   only --all runs it
    # compiler: clang 22.1.8       its output depends on the compiler, and was made with this one
    # made: 2026-11-24 at af191a5d of slow ones: when, and of which commit
    # first: scons -c              a command before it, whose output is not kept
    # exit: 1                      the status with which it ends, if that is not 0
    # needs: ../shared/models      a file or folder outside the checkout that it reads, or a Python package

A command is not compared if this machine lacks its compiler or something that it needs; that is reported. For
a new figure, write such a file with the command and its properties, and run --write NAME.

In a page a figure stands between marks, which readers do not see:

    <!-- figures -->               indented sessions: each `$` line is a command that is kept. `...` stands
    <!-- end -->                   for lines left out; the other lines are found again by their words
    <!-- figure NAME -->           all of an output; `NAME 2`: its second paragraph; `NAME 2 code`: as code
    <!-- end -->
    <!-- figure NAME: REGEX -->    within a sentence: what the expression's group matches in such a file
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs/figures"
WIDTH = "116"  # characters of tables: with their indentation, 120
CODE = ("buildtool", "plugins", "kernels", "site_scons", "SConstruct", "benchmarks", "requirements.txt")
ENVIRONMENT = {"COLUMNS": WIDTH, "NO_COLOR": "1", "BUILDTOOL_DAEMON": "off"}
MARK = re.compile(
    r"<!-- figure(?P<many>s)?(?: (?P<name>[\w-]+))?(?: (?P<part>\d+))?(?P<code> code)?"
    r"(?:: (?P<regex>.*?))? -->"
)
END = "<!-- end -->"
GAP = "..."


class PageError(Exception):
    """Raised for a wrong mark, a wrong recorded file or a failed command."""


@dataclass(frozen=True)
class Kept:
    """A command and its recorded output. `about` are the entries of the file's header, by name."""

    name: str
    command: str
    about: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    @property
    def is_slow(self) -> bool:
        """Whether the command runs only with --all."""
        return self.about.get("pace") == "slow"

    def text(self) -> str:
        """Returns the text of the recorded file."""
        head = [f"$ {self.command}", *(f"# {key}: {value}" for key, value in self.about.items())]
        return "\n".join([*head, "", *self.lines]) + "\n"


def read(path: Path) -> Kept:
    """Reads a recorded file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    if not lines[0].startswith("$ "):
        raise PageError(f"{path.name} does not begin with a command")
    end = next((i for i, line in enumerate(lines) if i and not line.startswith("# ")), len(lines))
    about = dict(line[2:].split(": ", 1) for line in lines[1:end])
    body = lines[end + 1 :]
    while body and not body[-1]:
        body.pop()
    return Kept(path.stem, lines[0][2:], about, tuple(body))


def kept() -> dict[str, Kept]:
    """Returns all recorded files by name."""
    return {path.stem: read(path) for path in sorted(KEPT.glob("*.txt"))}


# ---- running ---------------------------------------------------------------------------------------


def compiler_here(kind: str) -> str:
    """Returns the compiler that commands use here, with its version.

    `kind` is its name, such as "clang" or "xtensa-lx106-elf-gcc".
    """
    if kind == "clang":
        from buildtool_plugins.tools.find import find_clang

        return find_clang().identity
    try:
        done = subprocess.run([kind, "--version"], capture_output=True, text=True, check=True)
    except OSError:
        return f"no {kind}"
    return f"{kind} {re.findall(r'[0-9]+(?:[.][0-9]+)+', done.stdout)[-1]}"


def _is_package(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(name) is not None


def why_not(one: Kept, *, write: bool) -> str:
    """Returns why a command cannot run here; "" if it can.

    With `write`, any version of its compiler suffices.
    """
    needs = one.about.get("needs", "")
    if needs and not (ROOT / needs).exists() and not _is_package(needs):
        return f"it needs {needs}"
    if wanted := one.about.get("compiler", ""):
        here = compiler_here(wanted.split()[0])
        if here.startswith("no ") or (not write and here != wanted):
            return f"it was kept for {wanted}, and here is {here}"
    return ""


def run(one: Kept) -> Kept:
    """Runs the command again; raises PageError if its exit status is not the expected one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **ENVIRONMENT, "PATH": path}
    for command in filter(None, [one.about.get("first"), one.command]):
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wanted = int(one.about.get("exit", "0")) if command == one.command else 0
        if done.returncode != wanted:
            raise PageError(f"{one.name}: '{command}' ends with {done.returncode}:\n{done.stdout[-2000:]}")
    return replace(one, lines=tuple(done.stdout.rstrip("\n").split("\n")))


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def stamped(one: Kept) -> Kept:
    """Returns the record with the name of this machine's compiler.

    The record of a slow command also gets the date and the commit.
    """
    about = dict(one.about)
    if "compiler" in about:
        about["compiler"] = compiler_here(about["compiler"].split()[0])
    if one.is_slow:
        changed = " with changes" if _git("status", "--porcelain", "--", *CODE) else ""
        about["made"] = f"{datetime.date.today()} at {_git('rev-parse', '--short=8', 'HEAD')}{changed}"
    return replace(one, about=about)


# ---- pages -----------------------------------------------------------------------------------------


def pages() -> list[Path]:
    """Returns the pages that may have marks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def written(text: str, known: Mapping[str, Kept]) -> str:
    """Returns the text of a page with the recorded figures; raises PageError for a wrong mark."""
    parts, at = [], 0
    while mark := MARK.search(text, at):
        end = text.find(END, mark.end())
        if end < 0 or MARK.search(text, mark.end(), end):
            raise PageError(f"{mark[0]} has no {END}")
        parts += [text[at : mark.end()], _block(mark, text[mark.end() : end], known), END]
        at = end + len(END)
    return "".join([*parts, text[at:]])


def _block(mark: re.Match[str], now: str, known: Mapping[str, Kept]) -> str:
    if mark["many"]:
        return f"\n{_sessions(now, known)}\n"
    if (one := known.get(mark["name"])) is None:
        raise PageError(f"{mark[0]}: there is no docs/figures/{mark['name']}.txt")
    if mark["regex"] is not None:
        found = re.search(mark["regex"], one.text(), re.MULTILINE)
        if found is None:
            raise PageError(f"{mark[0]}: its output has no such words")
        return found[1]
    paragraphs = "\n".join(one.lines).split("\n\n")
    number = int(mark["part"] or 0)
    if number > len(paragraphs):
        raise PageError(f"{mark[0]}: its output has {len(paragraphs)} paragraphs")
    text = paragraphs[number - 1] if number else "\n".join(one.lines)
    return f"\n\n{textwrap.indent(text, '    ') if mark['code'] else text}\n\n"


def _sessions(now: str, known: Mapping[str, Kept]) -> str:
    """Returns indented sessions: each command with its recorded output."""
    by_command = {one.command: one for one in known.values()}
    shown: list[list[str]] = []
    for line in now.strip("\n").split("\n"):
        plain = line.removeprefix("    ")
        if plain.startswith("$ "):
            shown.append([plain])
        elif shown:
            shown[-1].append(plain)
    made = []
    for command, *lines in shown:
        one = by_command.get(command.removeprefix("$ ").removeprefix("./dev "))
        if one is None:
            raise PageError(f"no file in docs/figures is of the command '{command}'")
        is_apart = bool(lines) and not lines[-1]
        while lines and not lines[-1]:
            lines.pop()
        made += [command, *chosen(lines, one)] + [""] * is_apart
    return "\n".join(f"    {line}".rstrip() for line in made)


def _words(line: str) -> str:
    """Returns a line without its numbers and column widths, so that it can be compared."""
    return re.sub(r"[\s-]+", " ", re.sub(r"[-+]?[0-9][0-9.,]*", "#", line)).strip()


def chosen(shown: Sequence[str], one: Kept) -> list[str]:
    """Returns those lines of an output that a page shows. `shown` are the page's present lines, with gaps.

    Raises PageError if the output no longer has one of the lines on the page.
    """
    found: list[str] = []
    at, is_gap = 0, False
    for line in shown:
        if line == GAP:
            is_gap = True
            continue
        there = next((i for i in range(at, len(one.lines)) if _words(one.lines[i]) == _words(line)), None)
        if there is None:
            raise PageError(f"{one.name}: the page shows a line that the output does not have: {line}")
        found += [GAP] if is_gap and there > at else one.lines[at:there]
        found.append(one.lines[there])
        at, is_gap = there + 1, False
    rest = one.lines[at:]
    return [*found, *([GAP] if is_gap and rest else rest)]


# ---- the command -----------------------------------------------------------------------------------


def compare(known: Mapping[str, Kept]) -> Iterator[str]:
    """Yields the differences between pages and recorded files; runs no command."""
    used = set[str]()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        used |= {
            one.name
            for one in known.values()
            if f"$ {one.command}" in text or f"$ ./dev {one.command}" in text
        }
        used |= {mark["name"] for mark in MARK.finditer(text) if mark["name"]}
        try:
            wanted = written(text, known)
        except PageError as error:
            yield f"{name}: {error}"
            continue
        lines = difflib.unified_diff(
            text.split("\n"), wanted.split("\n"), name, "as it is kept", lineterm="", n=0
        )
        if said := "\n".join(lines):
            yield said
    yield from (f"docs/figures/{name}.txt is in no page" for name in sorted(set(known) - used))


def main(words: Sequence[str] | None = None) -> int:
    """Checks or writes the pages; returns the exit status, 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of kept files; default: all quick ones")
    parser.add_argument("--all", action="store_true", help="the slow ones, too")
    parser.add_argument("--write", action="store_true", help="keeps the outputs, and writes the pages")
    given = parser.parse_args(words)
    known = kept()
    if unknown := set(given.names) - set(known):
        parser.error(f"there is no docs/figures/{min(unknown)}.txt")
    wanted = [known[n] for n in given.names] or [
        one for one in known.values() if given.all or not one.is_slow
    ]
    wrong = list(_run_all(wanted, known, write=given.write))
    if given.write:
        for page in pages():
            text = page.read_text(encoding="utf-8")
            try:
                page.write_text(written(text, known), encoding="utf-8")
            except PageError as error:
                wrong.append(f"{page.name}: {error}")
    else:
        wrong += compare(known)
    for text in wrong:
        print(text)
    if wrong and not given.write:
        print("to write them: ./dev python -m benchmarks.pages --write" + " --all" * given.all)
    elif not wrong:
        print(
            "the pages have what was written"
            if given.write
            else "all that was compared is as the pages have it"
        )
    return 1 if wrong else 0


def _run_all(wanted: Sequence[Kept], known: dict[str, Kept], *, write: bool) -> Iterator[str]:
    """Runs the commands; yields the differences from the records.

    With `write`, it writes new records, and yields only the errors.
    """
    for one in wanted:
        if why := why_not(one, write=write):
            print(f"not compared: {one.name}: {why}", flush=True)
            continue
        print(f"running {one.name}: {one.command}", flush=True)
        try:
            found = run(one)
        except PageError as error:
            yield str(error)
            continue
        if write:
            known[one.name] = stamped(found)
            (KEPT / f"{one.name}.txt").write_text(known[one.name].text(), encoding="utf-8")
        elif found.lines != one.lines:
            name = f"docs/figures/{one.name}.txt"
            yield "\n".join(difflib.unified_diff(one.lines, found.lines, name, "as it is", lineterm="", n=0))


if __name__ == "__main__":
    sys.exit(main())
