"""The planner's parts in C: each compiles without a warning, and a missing one is reported."""

import subprocess

import pytest
from needs import needs_tool
from paths import ROOT

from buildtool.base.compiled import load
from buildtool.base.errors import ToolError
from buildtool.plan.place import search

FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-fPIC"]


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted((ROOT / "buildtool").rglob("*.c")), ids=lambda path: path.stem)
def test_compiles_without_a_warning(tmp_path, source):
    needs_tool("gcc")
    subprocess.run(["gcc", *FLAGS, "-c", str(source), "-o", str(tmp_path / "made.o")], check=True)


@pytest.mark.parametrize(("name", "abi"), [("search", -1), ("none", 1)])
def test_a_missing_or_foreign_library_says_what_to_do(name, abi):
    with pytest.raises(ToolError, match=f"'_{name}', is missing, or belongs to another version") as caught:
        load(search.__file__, name, abi, {})
    assert "./dev" in caught.value.hint


def test_no_library_contains_the_folder_that_it_was_compiled_in():
    """The keys of caches have the libraries' digest: other machines could not use the same entries."""
    libraries = [
        path for path in (ROOT / "buildtool").rglob("_*.so") if path.with_name(f"{path.stem[1:]}.c").is_file()
    ]
    assert libraries
    assert [path for path in libraries if str(ROOT).encode() in path.read_bytes()] == []
