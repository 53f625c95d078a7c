"""The page docs/start/scons-first-project.md, done in an empty folder as a newcomer would."""

from pathlib import Path

import pytest
from firstprojects import FirstProject, keyword_class
from needs import needs_tool


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for tool in ("clang", "qemu-system-arm"):
        needs_tool(tool)
    project = FirstProject("scons-first-project.md", tmp_path)
    assert sorted(project.files) == ["SConstruct", "main.c"]
    assert project.follow() == 5
    assert project.shown("qemu") == f"{keyword_class()}\n"
    project.check_refusal("SConstruct", 'ram="12K"', 'ram="4K"', "scons -Q")
