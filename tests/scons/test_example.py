"""The example of another repository: its own firmware, a network linked as a library."""

import re
from pathlib import Path

import pytest
from made_up import best, scores
from onecompile import once_compiled
from programs import SCONS, copied, said


@pytest.fixture(scope="module")
def compilers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return once_compiled(tmp_path_factory)


@pytest.mark.slow
def test_the_application_prints_the_references_scores_from_its_own_section(
    tmp_path: Path, compilers: dict[str, str]
) -> None:
    folder = copied("keyword_firmware", tmp_path / "firmware")
    for board in ("cortex-m4", "host"):
        shown = said(folder, *SCONS, "-j2", f"board={board}", "run", environment=compilers)
        assert f"scores: {scores()}\n" in shown
        assert f"keyword {best()}\n" in shown
        shown = said(folder, *SCONS, f"board={board}", "build", environment=compilers)
        assert shown.count("up to date") == 1
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
