"""The example of another repository: its own firmware, a network linked as a library."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from keywordscores import expected_scores
from onecompile import once_compiled
from paths import ROOT

EXAMPLE = ROOT / "examples/keyword_firmware"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example alone, far from this repository."""
    copy = tmp_path / "firmware"
    ignore = shutil.ignore_patterns("build", ".sconsign.dblite", "compile_commands.json")
    shutil.copytree(EXAMPLE, copy, ignore=ignore)
    return copy


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


def scons(folder: Path, compilers: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "SCons", "-Q", "-j2", *words],
        cwd=folder,
        env=os.environ | compilers,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_the_application_prints_the_references_scores_from_its_own_section(
    folder: Path, compilers: dict[str, str]
) -> None:
    for board in ("cortex-m4", "host"):
        said = scons(folder, compilers, f"board={board}", "run")
        scores = expected_scores()
        assert f"scores: {' '.join(map(str, scores))}\n" in said
        assert f"keyword {scores.index(max(scores))}\n" in said
        assert scons(folder, compilers, f"board={board}", "build").count("up to date") == 1
    _check_section(folder)


def _check_section(folder: Path) -> None:
    """The arena lies where the application wants it."""
    from elftools.elf.elffile import ELFFile

    header = (folder / "build/cortex-m4/keywords/src/keywords.h").read_text()
    size = int(re.search(r"#define KEYWORDS_ARENA_BYTES (\d+)", header).group(1))
    with (folder / "build/cortex-m4/app.elf").open("rb") as file:
        elf = ELFFile(file)
        # the network has a pointer of the same name
        symbols = elf.get_section_by_name(".symtab").get_symbol_by_name("arena")
        sections = {symbol["st_size"]: elf.get_section(symbol["st_shndx"]).name for symbol in symbols}
    assert sections[size] == ".nn_arena"
