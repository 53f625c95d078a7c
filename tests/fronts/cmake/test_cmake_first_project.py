"""The page docs/start/cmake-first-project.md, done in an empty folder as a newcomer would."""

from pathlib import Path

import pytest
from firstprojects import FirstProject
from needs import needs_tool


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for tool in ("clang", "qemu-system-arm"):
        needs_tool(tool)
    project = FirstProject("cmake-first-project.md", tmp_path)
    assert sorted(project.files) == ["CMakeLists.txt", "main.c"]
    assert project.follow() == 6
    project.check_refusal("CMakeLists.txt", "RAM 12K", "RAM 4K", "cmake --build build")
