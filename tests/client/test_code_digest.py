"""The digest of the code that answers: of all that decides an answer, also where others have written it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from buildtool.base import identity
from buildtool.base.identity import code_digest


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up checkout, and beside it a distribution that offers boards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = {
        "home/buildtool/planner.py": "",
        "home/buildtool/target/recorded/core.toml": "stack = 1",
        "home/buildtool/plan/search.c": "",
        "home/buildtool/plan/_search.cpython-311-x86_64-linux-gnu.so": "compiled",
        "home/plugins/buildtool_plugins/boards/one.toml": "",
        "home/kernels/family/packing.py": "",
        "home/kernels/family/add.c": "",
        "others/theirs_package/__init__.py": "",
        "others/theirs_package/script.ld.in": "",
        "others/a.dist-info/entry_points.txt": "[buildtool.targets]\na = theirs_package.code:plugin\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(identity, "home", lambda: str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "others")])
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "home/buildtool/planner.py",
        "home/buildtool/target/recorded/core.toml",  # what code takes decides what is emitted
        "home/buildtool/plan/search.c",
        # of an edited source: it answers otherwise only now
        "home/buildtool/plan/_search.cpython-311-x86_64-linux-gnu.so",
        "home/plugins/buildtool_plugins/boards/one.toml",
        "home/kernels/family/packing.py",
        "others/theirs_package/script.ld.in",  # code of others may read any file that lies beside it
        "others/theirs_package/new.json",
    ],
)
def test_an_edit_of_any_of_them_changes_it(name: str, checkout: Path) -> None:
    before = code_digest()
    assert code_digest() == before
    (checkout / name).write_text("another")
    assert code_digest() != before


@pytest.mark.parametrize("name", ["home/kernels/family/add.c", "others/theirs_package/code.pyc"])
def test_an_edit_of_what_decides_no_answer_does_not(name: str, checkout: Path) -> None:
    before = code_digest()
    (checkout / name).write_text("another")
    assert code_digest() == before


def test_a_link_to_nothing_is_no_code(checkout: Path) -> None:
    """Editors say by such links who has a file open."""
    before = code_digest()
    for name in ("home/buildtool/.#planner.py", "others/theirs_package/.#code.py"):
        (checkout / name).symlink_to("somebody@elsewhere.1234")
    assert code_digest() == before
