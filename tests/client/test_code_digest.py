"""The digest of the code that answers: it covers all code that decides an answer, also foreign code."""

import sys

import pytest

import buildtool.base.code_digest as digests
from buildtool.base.code_digest import code_digest

DECIDING = (
    "home/buildtool/planner.py",
    "home/buildtool/plan/search.c",  # compiled for this machine, and run there
    "home/buildtool/plan/_search.so",  # which may be older than its source
    "home/buildtool/target/recorded/core.toml",  # the sizes of kernels decide what is emitted
    "home/plugins/buildtool_plugins/boards/one.toml",
    "home/plugins/buildtool_plugins/plugin.py",
    "home/plugins/buildtool_plugins/plugin.c",  # beside a module with its name: planning runs it
    "home/kernels/family/packing.py",
    "home/kernels/family/catalogue.toml",
    "home/kernels/family/nn_family_ask.h",  # planning runs it
    "others/theirs_package/script.ld.in",  # foreign code may read any file beside it
)
OF_NO_ACCOUNT = (  # the build system tracks the C of kernels and boards
    *("home/kernels/family/add.c", "home/kernels/include/nn.h", "home/plugins/buildtool_plugins/startup.c"),
    "others/theirs_package/code.pyc",
)


def make_checkout(folder, monkeypatch):
    """Makes a checkout, and beside it a distribution that offers boards."""
    entry = "[buildtool.targets]\na = theirs_package.code:plugin\n"
    files = {**dict.fromkeys((*DECIDING, "others/theirs_package/__init__.py"), "")}
    for name, text in {**files, "others/a.dist-info/entry_points.txt": entry}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(digests, "home", lambda: str(folder / "home"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder / "others")])


@pytest.fixture(autouse=True)
def checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_checkout(tmp_path / "one", monkeypatch)
    return tmp_path / "one"


@pytest.mark.parametrize("name", [*DECIDING, "others/theirs_package/new.json"])
def test_an_edit_of_any_of_them_changes_it(name, checkout):
    before = code_digest()
    assert code_digest() == before
    (checkout / name).write_text("another")
    assert code_digest() != before


@pytest.mark.parametrize("name", OF_NO_ACCOUNT)
def test_an_edit_of_what_decides_no_answer_does_not(name, checkout):
    before = code_digest()
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).write_text("another")
    assert code_digest() == before
