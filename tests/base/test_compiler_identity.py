"""The identity of a compiler: files whose names have spaces, and the libraries that its programs load."""

import os
import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_host_compiler

from buildtool.base import compiler

CC = find_host_compiler()


def digest_of(command, **variables):
    """Returns the digest of the identity, without the cache of `identify`."""
    found = compiler.identify.__wrapped__([str(command)], {"PATH": os.environ["PATH"], **variables})
    assert found is not None
    return found.digest


SAID = ("Reading specs from {}", "Configuration file: {}", "COLLECT_GCC={}", ' "{}" -cc1 empty.c')


@pytest.mark.parametrize(
    "script",
    [
        *(f"cat >&2 <<'END'\n{line}\nEND" for line in SAID),
        "echo ' {} -quiet -v empty.c' >&2",  # as GCC prints what it runs
        'false && "{}"\nexit 0',  # only the script names the file
    ],
)
def test_a_file_whose_name_has_spaces_is_seen(tmp_path, script):
    named = tmp_path / "my tools" / "one file of  it"
    named.parent.mkdir()
    named.write_text("one")
    said = tmp_path / "cc"
    said.write_text(f"#!/bin/sh\n{script.format(named)}\n")
    said.chmod(0o700)
    before = digest_of(said)
    assert digest_of(said) == before
    named.write_text("other")
    assert digest_of(said) != before


@pytest.fixture
def loading(tmp_path):
    """A compiler that loads a library from its folder `lib`."""
    for name in ("lib", "first"):
        (tmp_path / name).mkdir()
    (tmp_path / "cc.c").write_text("int flag(void);\nint main(void) { return flag(); }\n")
    library(tmp_path / "lib/libflag.so", "int flag(void) { return 0; }")
    found = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib"
    made(tmp_path / "cc.c", "-o", tmp_path / "cc", "-L", tmp_path / "lib", "-lflag", found)
    return tmp_path / "cc"


def library(path, text, *words):
    source = path.with_suffix(".c")
    source.write_text(text + "\n")
    made("-shared", "-fPIC", source, "-o", f"{path}.new", *words)
    Path(f"{path}.new").replace(path)


def made(*words):
    subprocess.run([CC, *map(str, words)], check=True)


def test_a_library_that_is_found_before_another_is_seen(loading):
    first = loading.parent / "first"
    variables = {"LD_LIBRARY_PATH": str(first)}
    before = digest_of(loading, **variables)
    library(first / "libflag.so", "int flag(void) { return 0; }\nint other;")
    assert digest_of(loading, **variables) != before


def test_what_another_state_of_a_library_loads_is_seen(loading):
    folder = loading.parent / "lib"
    digest_of(loading)
    library(folder / "libmore.so", "int more(void) { return 0; }")
    own = ("-L", str(folder), "-lmore", "-Wl,-rpath,$ORIGIN")
    library(folder / "libflag.so", "int more(void);\nint flag(void) { return more(); }", *own)
    before = digest_of(loading)
    library(folder / "libmore.so", "int more(void) { return 0 * 1 + 0; }\nint other;")
    assert digest_of(loading) != before


def test_a_library_that_a_variable_loads_before_all_others_is_seen(loading):
    digest_of(loading)
    more = loading.parent / "first/more.so"
    library(more, "int more(void) { return 0; }")
    before = digest_of(loading, LD_PRELOAD=str(more))
    library(more, "int more(void) { return 1; }")
    assert digest_of(loading, LD_PRELOAD=str(more)) != before
