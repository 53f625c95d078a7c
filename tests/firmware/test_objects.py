"""Compiled objects in the cache: what a key covers, which entries are refused, and how to switch it off."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from buildtool_plugins.tools.find import find_clang, find_host_compiler
from paths import script

from buildtool.base import compiler as compilers
from buildtool.base import objects as base_objects
from buildtool.base.errors import ToolError
from buildtool.base.modes import Use
from buildtool.base.session import Session, working
from buildtool.base.store.cache import open_cache
from buildtool.firmware import objects
from buildtool.firmware.objects import Compiler, Unit, compile_all

CC = find_host_compiler()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache for the test; every call of `compiled` is a request of a new process."""
    monkeypatch.setenv("BUILDTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BUILDTOOL_CACHE", "on")
    monkeypatch.setattr(objects, "current_session", objects.current_session.real)
    return tmp_path / "cache"


@pytest.fixture
def asked(monkeypatch):
    """The compiler's identity is found again for every request, as in a new process."""
    monkeypatch.setattr(base_objects, "identify", compilers.identify.__wrapped__)


def entries(cache):
    return sorted(path for path in (cache / "objects").glob("*/*") if not path.name.startswith("."))


@pytest.fixture
def runs(monkeypatch):
    """The commands of the compilers that were started."""
    started = []
    run = objects.run

    def counted(command, *arguments, **keywords):
        started.append(command)
        return run(command, *arguments, **keywords)

    monkeypatch.setattr(objects, "run", counted)
    return started


@pytest.fixture
def tree(tmp_path):
    """A source that includes a header of its own folder, one of -I and one of -isystem."""
    for name in ("src", "include", "system", "out"):
        (tmp_path / name).mkdir()
    includes = '#include "own.h"\n#include "given.h"\n#include <sys_given.h>\n'
    (tmp_path / "src/a.c").write_text(includes + "int a = OWN + GIVEN + SYSTEM;\n")
    (tmp_path / "src/own.h").write_text("#define OWN 1\n")
    (tmp_path / "include/given.h").write_text("#define GIVEN 10\n")
    (tmp_path / "system/sys_given.h").write_text("#define SYSTEM 100\n")
    return tmp_path


def request(make, use=Use.ON, code="code"):
    """The result of `make`, as a request of a new process, whose code has the digest `code`."""
    keeper = open_cache(code)
    if keeper is None:
        with working(Session()):
            return make()
    keeper.is_current = lambda: True
    keeper.begin("a test", use)
    try:
        with working(Session(keeper=None if use is Use.OFF else keeper)):
            return make()
    finally:
        keeper.flush()


def files(folder):
    return [folder, *folder.rglob("*")]


def compiled(tree, *, identity="cc 1", flags=(), unit_flags=(), cc=CC, use=Use.ON, code="code"):
    compiler = Compiler(str(cc), identity, ("-O1", "-isystem", str(tree / "system"), *flags))
    unit = Unit(tree / "src" / "a.c", (tree / "include",), unit_flags)
    # Files that were written during the compilation are not trusted.
    written = max(
        path.stat().st_mtime for part in ("src", "include", "system") for path in files(tree / part)
    )
    time.sleep(max(0.0, written + 0.06 - time.time()))
    (path,) = request(lambda: compile_all(compiler, [unit], tree / "out"), use, code)
    return path.read_bytes()


def test_the_second_time_nothing_is_compiled(tree, cache, runs):
    first = compiled(tree)
    assert compiled(tree) == first
    assert len(runs) == 1
    assert len(entries(cache)) == 1


# ---- attacks: the key covers everything that matters, and altered entries are refused ----------------------


@pytest.mark.parametrize("variable", ["CPATH", "C_INCLUDE_PATH"])
def test_a_header_in_a_folder_that_a_variable_names_is_seen(tree, asked, monkeypatch, variable):
    folder = tree / "planted"
    folder.mkdir()
    (tree / "src" / "a.c").write_text("#include <stddef.h>\n#ifndef A\n#define A 1\n#endif\nint a = A;\n")
    clean = compiled(tree)
    monkeypatch.setenv(variable, str(folder))
    (folder / "stddef.h").write_text("#define A 5\n")
    assert compiled(tree) == clean
    monkeypatch.setenv(compilers.PASSED, variable)
    planted = compiled(tree)
    assert planted != clean and planted == compiled(tree, use=Use.OFF)
    (folder / "stddef.h").write_text("#define A 6\n")
    assert compiled(tree) == compiled(tree, use=Use.OFF) not in (planted, clean)
    (folder / "stddef.h").unlink()
    assert compiled(tree) == clean
    monkeypatch.delenv(compilers.PASSED)
    assert compiled(tree) == clean


@pytest.mark.parametrize(
    ("own", "flags", "definition"),
    [
        ("1", ("-include", "{tree}/first.h"), "-DNN_MADE_UP={}"),
        ("1", ("-include", "first.h", "-I{tree}"), "-DNN_MADE_UP={}"),
        ("CHOICE", ("-DCHOICE=NN_MADE_UP",), "-DNN_MADE_UP={}"),
        ("NN_CHOICE", ("-DNN_CHOICE=NN_MADE_UP",), "-DNN_MADE_UP={}"),
        ("NN_MADE_UP(3)", (), "-DNN_MADE_UP(x)=(x+{})"),
    ],
)
def test_a_macro_that_only_a_header_or_macro_of_the_flags_mentions_is_a_part_of_the_key(
    tree, cache, own, flags, definition
):
    (tree / "first.h").write_text("#if NN_MADE_UP == 2\nint b = 5;\n#endif\n")
    (tree / "src" / "own.h").write_text(f"#define OWN {own}\n")
    own_flags = [flag.format(tree=tree) for flag in flags]
    one, two, again = (compiled(tree, flags=(*own_flags, definition.format(n))) for n in (1, 2, 1))
    assert one != two
    assert one == again


@pytest.mark.parametrize("changes", ["cc", "real"])
def test_a_wrapper_and_the_compiler_behind_it_are_parts_of_the_key(tree, asked, runs, changes):
    script(tree / "cc", f'exec {tree / "real"} "$@"')

    def become(words):
        script(tree / changes, f'exec {CC} {words} "$@"')
        return compiled(tree, cc=tree / "cc")

    plain, other = become("   "), become("-g3")
    assert plain != other
    assert become("   ") == plain
    assert len(runs) == 2


@pytest.mark.parametrize("place", ["home/.config/clang.cfg", "bin/clang.cfg"])
def test_a_configuration_file_of_the_compiler_is_seen(tree, asked, monkeypatch, place):
    """The file is in the user's home, or in the compiler's folder."""
    clang = tree / "bin" / "clang"
    clang.parent.mkdir()
    shutil.copy2(os.path.realpath(find_clang().path), clang)
    monkeypatch.setenv("HOME", str(tree / "home"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{Path(os.path.realpath(find_clang().path)).parents[1] / 'lib'}")
    where = f"--config-user-dir={tree / 'home/.config'}"  # as other distributions build it
    resources = subprocess.check_output([find_clang().path, "-print-resource-dir"], text=True).strip()

    def made(use=Use.ON):
        return compiled(tree, cc=clang, flags=(where, f"-resource-dir={resources}"), use=use)

    clean, path = made(), tree / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("-DOWN=5 -g\n")
    other = made()
    assert other == made(Use.OFF) != clean
    path.write_text("-DOWN=5 -gdwarf-3\n")
    assert made() == made(Use.OFF) != other
    path.unlink()
    assert made() == clean


# ---- switches ----------------------------------------------------------------------------------------------


def test_a_file_that_changes_while_it_is_compiled_leaves_nothing(tree, cache, monkeypatch):
    run = objects.run

    def edited(*arguments, **keywords):
        output = run(*arguments, **keywords)
        (tree / "include" / "given.h").write_text("#define GIVEN 20\n")
        return output

    monkeypatch.setattr(objects, "run", edited)
    before = compiled(tree)
    assert entries(cache) == []
    monkeypatch.setattr(objects, "run", run)
    assert compiled(tree) != before


# ---- files that a compilation reads ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("src/own.h", "#define OWN 2\n"),
        ("include/given.h", "#define GIVEN 20\n"),
        ("system/sys_given.h", "#define SYSTEM 200\n"),
        ("include/deep/more.h", "#define MORE 2\n"),  # which another one includes
        ("src/given.h", "#define GIVEN 50\n"),  # a new one, found before another of that name
    ],
)
def test_a_changed_header_is_compiled_anew(tree, cache, runs, header, text):
    (tree / "include" / "deep").mkdir()
    (tree / "include" / "deep" / "more.h").write_text("#define MORE 1\n")
    with (tree / "include" / "given.h").open("a") as file:
        file.write(
            '# include "deep/more.h"\nstatic const int more = MORE;\nint of_more(void) { return more; }\n'
        )
    before, old = compiled(tree), (tree / header).read_text() if (tree / header).exists() else ""
    (tree / header).write_text(text)
    assert compiled(tree) != before
    (tree / header).write_text(old) if old else (tree / header).unlink()
    assert compiled(tree) == before
    assert len(runs) == 2


@pytest.mark.parametrize(
    "hidden",
    [
        '#define NAME "own.h"\n#include NAME\n',
        '#if __has_include("given.h")\n#endif\n',
        '%:include "own.h"\n',
        '__asm__(".incbin \\"a.c\\"");\n',
        "const char made[] = __TIME__;\n",
    ],
)
def test_a_source_that_hides_what_it_reads_is_always_compiled(tree, cache, runs, hidden):
    (tree / "src" / "own.h").write_text("#define OWN 1\n" + hidden.replace("own.h", "given.h"))
    assert compiled(tree) and compiled(tree)
    assert len(runs) == 2


def test_assembly_is_kept_unless_it_takes_data_in(tree, cache, runs):
    source = tree / "src" / "b.S"
    data = tree / "src" / "data.bin"
    data.write_bytes(b"1234")
    for text, times in ((".data\n.long 1\n", 1), ('.data\n.incbin "data.bin"\n', 2)):
        source.write_text(text)
        runs.clear()
        for _ in range(2):
            request(lambda: compile_all(Compiler(CC, "cc 1", ()), [Unit(source)], tree / "out"))
        assert len(runs) == times, text


def test_a_changed_source_flag_or_compiler_is_compiled_anew(tree, cache, runs):
    compiled(tree)
    compiled(tree, flags=("-DX=1",))
    compiled(tree, unit_flags=("-DX=1",))
    compiled(tree, identity="cc 2")
    (tree / "src" / "a.c").write_text((tree / "src" / "a.c").read_text() + "int b;\n")
    compiled(tree)
    assert len(runs) == 5


def test_the_first_words_of_a_compiler_are_in_the_error(tree, cache):
    (tree / "src" / "a.c").write_text("".join(f"int a{n} = nonsense{n};\n" for n in range(200)))
    with pytest.raises(ToolError, match=r"compiling a\.c failed(.|\n)*nonsense0") as caught:
        compiled(tree, flags=("-ferror-limit=0",) if "clang" in CC else ())
    assert len(caught.value.text.splitlines()) <= 23
    assert caught.value.text.endswith("...")
    assert entries(cache) == []
    (tree / "src" / "a.c").write_bytes(b"#error \xff\xfe\n")  # no UTF-8
    with pytest.raises(ToolError, match=r"a\.c"):
        compiled(tree)


def refuse(tree, cc):
    """The error of a compiler that makes no object; checks that nothing is kept for the next time."""
    with pytest.raises(ToolError) as caught:
        compile_all(
            Compiler(str(cc), "fake 1", ()), [Unit(tree / "src/a.c", (tree / "include",))], tree / "out"
        )
    assert entries(tree / "cache") == []
    return caught.value


def test_a_compiler_that_is_missing_or_ended_by_a_signal_is_told(tree, cache):
    assert "cannot start /nowhere/cc" in refuse(tree, "/nowhere/cc").text
    assert "File size limit exceeded" in refuse(tree, script(tree / "fakecc", "kill -XFSZ $$")).text


@pytest.mark.parametrize("prints", ["", "int a;"])
@pytest.mark.parametrize("makes", ["", "int a;"])
def test_a_compiler_that_reports_success_and_makes_no_object_is_an_error(tree, cache, prints, makes):
    write = f'for last; do :; done; printf "{makes}" > "$last"' if makes else ":"
    error = refuse(tree, script(tree / "fakecc", f'printf "{prints}"\n{write}'))
    assert "fakecc reported success, but made no object" in error.text and "core.cflags" in error.hint
    assert ("it printed:\nint a;" in error.text) == bool(prints)
