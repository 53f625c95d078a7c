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
    identity = compiler.identify.__wrapped__([str(command)], {"PATH": os.environ["PATH"], **variables})
    assert identity is not None
    return identity.digest


LINES = ("Reading specs from {}", "Configuration file: {}", "COLLECT_GCC={}", ' "{}" -cc1 empty.c')


@pytest.mark.parametrize(
    "script",
    [
        *(f"cat >&2 <<'END'\n{line}\nEND" for line in LINES),
        "echo ' {} -quiet -v empty.c' >&2",  # as GCC prints what it runs
        'false && "{}"\nexit 0',  # only the script names the file
    ],
)
def test_a_file_whose_name_has_spaces_is_seen(tmp_path, script):
    tool = tmp_path / "my tools" / "one file of  it"
    tool.parent.mkdir()
    tool.write_text("one")
    compiler_script = tmp_path / "cc"
    compiler_script.write_text(f"#!/bin/sh\n{script.format(tool)}\n")
    compiler_script.chmod(0o700)
    before = digest_of(compiler_script)
    assert digest_of(compiler_script) == before
    tool.write_text("other")
    assert digest_of(compiler_script) != before


@pytest.fixture
def loading(tmp_path):
    """A compiler that loads a library from its folder `lib`."""
    for name in ("lib", "first"):
        (tmp_path / name).mkdir()
    (tmp_path / "cc.c").write_text("int flag(void);\nint main(void) { return flag(); }\n")
    make_library(tmp_path / "lib/libflag.so", "int flag(void) { return 0; }")
    rpath = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib"
    compile_with(tmp_path / "cc.c", "-o", tmp_path / "cc", "-L", tmp_path / "lib", "-lflag", rpath)
    return tmp_path / "cc"


def make_library(path, text, *words):
    source = path.with_suffix(".c")
    source.write_text(text + "\n")
    compile_with("-shared", "-fPIC", source, "-o", f"{path}.new", *words)
    Path(f"{path}.new").replace(path)


def compile_with(*words):
    subprocess.run([CC, *map(str, words)], check=True)


def test_a_library_that_is_found_before_another_is_seen(loading):
    first = loading.parent / "first"
    variables = {"LD_LIBRARY_PATH": str(first)}
    before = digest_of(loading, **variables)
    make_library(first / "libflag.so", "int flag(void) { return 0; }\nint other;")
    assert digest_of(loading, **variables) != before


def test_what_another_state_of_a_library_loads_is_seen(loading):
    folder = loading.parent / "lib"
    digest_of(loading)
    make_library(folder / "libmore.so", "int more(void) { return 0; }")
    own = ("-L", str(folder), "-lmore", "-Wl,-rpath,$ORIGIN")
    make_library(folder / "libflag.so", "int more(void);\nint flag(void) { return more(); }", *own)
    before = digest_of(loading)
    make_library(folder / "libmore.so", "int more(void) { return 0 * 1 + 0; }\nint other;")
    assert digest_of(loading) != before


def test_a_library_that_a_variable_loads_before_all_others_is_seen(loading):
    digest_of(loading)
    more = loading.parent / "first/more.so"
    make_library(more, "int more(void) { return 0; }")
    before = digest_of(loading, LD_PRELOAD=str(more))
    make_library(more, "int more(void) { return 1; }")
    assert digest_of(loading, LD_PRELOAD=str(more)) != before
