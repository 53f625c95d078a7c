"""Objects of build systems in the cache: which compilations are looked up, and what makes one run again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_host_compiler

from buildtool.base.compiler import environment
from buildtool.client.compiling import Objects, read_command

CC = find_host_compiler()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUILDTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BUILDTOOL_CACHE", "on")


class Checkout:
    """A folder with a kernel and its header. `compile` compiles in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "include").mkdir(parents=True)
        (folder / "include/wide.h").write_text("#define WIDE 8\n")
        (folder / "kernel.c").write_text('#include "wide.h"\nint wide(void) { return WIDE; }\n')

    def compile(self, *flags: str, use: str = "on", **variables: str) -> tuple[bool, bytes]:
        """Returns whether the compiler ran, and the object."""
        words = [CC, "-O2", *flags, f"-I{self.folder}/include", "-c", "kernel.c", "-o", "kernel.o"]
        ran: list[Sequence[str]] = []

        def run(words: Sequence[str]) -> int:
            ran.append(words)
            return subprocess.run(words, cwd=self.folder, check=False).returncode

        (self.folder / "kernel.o").unlink(missing_ok=True)
        objects = Objects(use)
        status, reads = objects.compile(words, run, environment() | variables, self.folder)
        objects.close()
        assert not status and (not reads or str(self.folder / "kernel.c") in reads)
        return bool(ran), (self.folder / "kernel.o").read_bytes()


@pytest.mark.slow
def test_an_equal_compilation_elsewhere_takes_the_object(tmp_path: Path) -> None:
    one, other = Checkout(tmp_path / "one"), Checkout(tmp_path / "another place")
    ran, made = one.compile()
    assert ran and other.compile() == (False, made)
    assert other.compile(use="off") == other.compile(use="renew") == (True, made)
    assert other.compile("-Wall", "-ffile-prefix-map=/a=b") == (True, made)  # -Wall is another flag
    assert other.compile("-Wall") == (False, made)


CHANGES: dict[str, Callable[[Checkout], tuple[bool, bytes]]] = {
    "a flag": lambda tree: tree.compile("-DWIDER=1"),
    "a variable that compilers read": lambda tree: tree.compile(SOURCE_DATE_EPOCH="1"),
    "a header": lambda tree: (
        (tree.folder / "include/wide.h").write_text("#define WIDE 9\n") and tree.compile()
    ),
    "a header that hides the other one": lambda tree: (
        (tree.folder / "wide.h").write_text("#define WIDE 9\n") and tree.compile()
    ),
    "the place, which its text names": lambda tree: (
        (tree.folder / "kernel.c").write_text('#include "wide.h"\nconst char *at = __FILE__;\n')
        and tree.compile()
    ),
    "debug information, which names folders": lambda tree: tree.compile("-g"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_may_change_the_object_compiles(tmp_path: Path, change: str) -> None:
    tree = Checkout(tmp_path / "tree")
    _, before = tree.compile()
    ran, made = CHANGES[change](tree)
    assert ran and (made != before) == (change not in ("a flag", "a variable that compilers read"))


OUTSIDE = """-g3|--coverage|-fprofile-use=a|-include a.h|@more|-fplugin=a.so|-Wa,-a=list|-save-temps
-fstack-usage|-Wp,-MD,a.d|-E|-x c|b.c|-iquote a|-fdump-tree-all|-fsanitize=address""".replace(
    "\n", "|"
).split("|")


@pytest.mark.parametrize("flags", OUTSIDE)
def test_a_compilation_that_may_read_or_write_more_is_not_looked_up(flags: str) -> None:
    words = ["cc", "-O2", "-c", "a.c", "-o", "a.o"]
    command = read_command(words, Path("/"))
    assert command is not None and command.unit.flags == ("-O2",)
    assert read_command([*words, *flags.split()], Path("/")) is None


def test_what_compiles_nothing_is_not_looked_up() -> None:
    for words in (
        ["ar", "rcs", "a.a", "a.o"],
        ["cc", "a.c", "-o", "a"],
        ["ccache", "cc", "-c", "a.c", "-o", "a.o"],
    ):
        assert read_command(words, Path("/")) is None
