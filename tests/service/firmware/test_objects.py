"""The object cache: what a key covers, damaged entries, folders that cannot be used, many at once."""

import concurrent.futures
import os
import stat
import time

import pytest
from buildtool_plugins.tools.find import find_host_compiler

from buildtool.errors import ToolError
from buildtool.service.firmware import objects
from buildtool.service.firmware.objects import Compiler, Unit, compile_all

CC = find_host_compiler()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "buildtool" / "objects"


@pytest.fixture
def runs(monkeypatch):
    """The compilers that were started."""
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
    (tmp_path / "src" / "a.c").write_text(
        '#include "own.h"\n#include "given.h"\n#include <sys_given.h>\nint a = OWN + GIVEN + SYSTEM;\n'
    )
    (tmp_path / "src" / "own.h").write_text("#define OWN 1\n")
    (tmp_path / "include" / "given.h").write_text("#define GIVEN 10\n")
    (tmp_path / "system" / "sys_given.h").write_text("#define SYSTEM 100\n")
    return tmp_path


def compiled(tree, *, identity="cc 1", flags=(), unit_flags=()):
    compiler = Compiler(CC, identity, ("-O1", "-isystem", str(tree / "system"), *flags))
    unit = Unit(tree / "src" / "a.c", (tree / "include",), unit_flags)
    (made,) = compile_all(compiler, [unit], tree / "out")
    return made.read_bytes()


def test_the_second_time_nothing_is_compiled(tree, cache, runs):
    first = compiled(tree)
    assert compiled(tree) == first
    assert len(runs) == 1
    assert len(list(cache.glob("*.o"))) == 1


@pytest.mark.parametrize("header", ["src/own.h", "include/given.h", "system/sys_given.h"])
def test_a_changed_header_is_compiled_anew(tree, cache, runs, header):
    before = compiled(tree)
    text = (tree / header).read_text()
    (tree / header).write_text(text.replace("1", "2"))
    assert compiled(tree) != before
    (tree / header).write_text(text)
    assert compiled(tree) == before
    assert len(runs) == 2


def test_a_header_that_nothing_includes_is_no_part_of_the_key(tree, cache, runs):
    """Start-up code lies beside every network's own header, and is compiled once all the same."""
    before = compiled(tree)
    (tree / "include" / "more.h").write_text("#define MORE 1\n")
    assert compiled(tree) == before
    assert len(runs) == 1


def test_a_header_that_an_included_one_includes_is_seen(tree, cache, runs):
    (tree / "include" / "given.h").write_text('# include "deep/more.h"\n#define GIVEN MORE\n')
    (tree / "include" / "deep").mkdir()
    more = tree / "include" / "deep" / "more.h"
    more.write_text("#define MORE 1\n")
    before = compiled(tree)
    more.write_text("#define MORE 2\n")
    assert compiled(tree) != before
    assert len(runs) == 2


def test_a_new_header_that_is_found_before_another_is_seen(tree, cache, runs):
    before = compiled(tree)
    (tree / "src" / "given.h").write_text("#define GIVEN 50\n")
    assert compiled(tree) != before
    assert len(runs) == 2


def test_headers_that_include_each_other_are_no_endless_walk(tree, cache, runs):
    (tree / "src" / "own.h").write_text('#pragma once\n#include "own.h"\n#include "a.c"\n#define OWN 1\n')
    (tree / "src" / "a.c").write_text("#pragma once\n" + (tree / "src" / "a.c").read_text())
    assert compiled(tree) == compiled(tree)


@pytest.mark.parametrize(
    "hidden",
    [
        '#define NAME "own.h"\n#include NAME\n',
        '#if __has_include("given.h")\n#endif\n',
        '%:include "own.h"\n',
        '__asm__(".incbin \\"a.c\\"");\n',
    ],
)
def test_a_source_that_hides_what_it_reads_is_always_compiled(tree, cache, runs, hidden):
    (tree / "src" / "own.h").write_text("#define OWN 1\n" + hidden.replace("own.h", "given.h"))
    assert compiled(tree) == compiled(tree)
    assert len(runs) == 2


def test_assembly_is_kept_unless_it_takes_data_in(tree, cache, runs):
    source = tree / "src" / "b.S"
    data = tree / "src" / "data.bin"
    data.write_bytes(b"1234")
    for text, times in ((".data\n.long 1\n", 1), ('.data\n.incbin "data.bin"\n', 2)):
        source.write_text(text)
        runs.clear()
        for _ in range(2):
            compile_all(Compiler(CC, "cc 1", ()), [Unit(source)], tree / "out")
        assert len(runs) == times, text


def test_a_changed_source_flag_or_compiler_is_compiled_anew(tree, cache, runs):
    compiled(tree)
    compiled(tree, flags=("-DX=1",))
    compiled(tree, unit_flags=("-DX=1",))
    compiled(tree, identity="cc 2")
    (tree / "src" / "a.c").write_text((tree / "src" / "a.c").read_text() + "int b;\n")
    compiled(tree)
    assert len(runs) == 5


def test_a_definition_that_nothing_mentions_changes_no_key(tree, cache, runs):
    """A build that traces or counts shares every kernel with the plain one."""
    before = compiled(tree, flags=("-DNN_X=1",))
    assert compiled(tree) == compiled(tree, flags=("-DNN_X=2", "-DNN_XY")) == before
    assert len(runs) == 1
    (tree / "src" / "own.h").write_text("#define OWN (NN_X)\n")
    assert compiled(tree, flags=("-DNN_X=1",)) != compiled(tree, flags=("-DNN_X=2",))
    assert len(runs) == 3
    (tree / "src" / "own.h").write_text("#define OWN 1\n#define CAT(x) NN_ ## x\n")
    assert compiled(tree, flags=("-DNN_X=1",)) == compiled(tree, flags=("-DNN_X=2",))
    assert len(runs) == 5


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_a_damaged_entry_is_compiled_anew(tree, cache, runs, damage):
    good = compiled(tree)
    (entry,) = cache.glob("*.o")
    data = bytearray(entry.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    entry.write_bytes({"cut": data[:-9], "flipped": data, "empty": b"", "foreign": good}[damage])
    assert compiled(tree) == good
    assert len(runs) == 2
    assert compiled(tree) == good
    assert len(runs) == 2


def test_a_cache_folder_that_cannot_be_made_is_no_error(tree, tmp_path, monkeypatch, runs):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled(tree) == compiled(tree)
    assert len(runs) == 2


def test_a_cache_that_cannot_be_written_is_no_error(tree, cache, runs, monkeypatch):
    """As on a full or read-only disk; root may write anywhere, so the calls themselves fail."""

    def refuse(*arguments, **keywords):
        raise PermissionError(30, "Read-only file system")

    good = compiled(tree)
    monkeypatch.setattr(objects.os, "utime", refuse)
    assert compiled(tree) == good
    assert len(runs) == 1
    monkeypatch.setattr(objects.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(objects.Path, "unlink", refuse)
    monkeypatch.setattr(objects, "CACHE_BYTES", 0)
    assert compiled(tree, flags=("-DX",))
    assert len(runs) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_cache_folder_is_no_error(tree, cache, runs):
    good = compiled(tree)
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert compiled(tree) == good
    assert compiled(tree, flags=("-DX",))
    cache.chmod(stat.S_IRWXU)


def test_without_a_home_there_is_no_cache(tree, monkeypatch, runs):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(objects.Path, "home", homeless)
    assert compiled(tree) == compiled(tree)
    assert len(runs) == 2


def test_builds_at_the_same_time_do_not_disturb_each_other(tree, cache):
    def one(number):
        out = tree / f"out{number}"
        out.mkdir()
        compiler = Compiler(CC, "cc", ("-isystem", str(tree / "system")))
        unit = Unit(tree / "src" / "a.c", (tree / "include",))
        return [path.read_bytes() for _ in range(3) for path in compile_all(compiler, [unit] * 3, out)]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = [data for group in pool.map(one, range(6)) for data in group]
    assert len(set(made)) == 1
    assert not list(cache.glob("*.part"))


def test_the_oldest_objects_go_when_the_cache_is_full(tree, cache, monkeypatch):
    for number in range(6):
        compiled(tree, flags=(f"-DX={number}",))
        (newest,) = [e for e in cache.glob("*.o") if e.stat().st_mtime > 2000]
        os.utime(newest, (1000 + number, 1000 + number))
    sizes = [entry.stat().st_size for entry in cache.glob("*.o")]
    monkeypatch.setattr(objects, "CACHE_BYTES", sum(sizes) - 1)
    objects._trim(cache)
    left = sorted(int(entry.stat().st_mtime) for entry in cache.glob("*.o"))
    assert 0 < len(left) < 6
    assert left == list(range(1006 - len(left), 1006))


def test_the_cache_is_looked_through_after_it_grew_and_once_in_a_while(tree, cache, monkeypatch):
    looks = []
    monkeypatch.setattr(objects, "_trim", looks.append)
    compiled(tree, flags=("-DX=1",))
    assert looks == [cache]
    compiled(tree, flags=("-DX=2",))  # soon after
    assert looks == [cache]
    mark = cache / objects._TRIMMED
    os.utime(mark, (time.time() - 100,) * 2)
    compiled(tree, flags=("-DX=2",))  # nothing new
    assert looks == [cache]
    compiled(tree, flags=("-DX=3",))
    assert looks == [cache, cache]
    os.utime(mark, (time.time() + 1000,) * 2)  # by a clock that was wrong
    compiled(tree, flags=("-DX=4",))
    assert looks == [cache] * 3


def test_entries_left_half_written_are_removed_once_old(cache):
    cache.mkdir(parents=True)
    old, young = cache / "a.part", cache / "b.part"
    old.write_bytes(b"x")
    young.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    objects._trim(cache)
    assert not old.exists() and young.exists()


def test_relative_folders_work(tree, cache, monkeypatch):
    monkeypatch.chdir(tree)
    compiler = Compiler(CC, "cc", ("-isystem", str(tree / "system")))
    unit = Unit((tree / "src" / "a.c").relative_to(tree), ((tree / "include").relative_to(tree),))
    (made,) = compile_all(compiler, [unit], (tree / "out").relative_to(tree))
    assert made.read_bytes()


def test_a_compiler_s_words_are_in_the_error(tree, cache):
    (tree / "src" / "a.c").write_text("int a = nonsense;\n")
    with pytest.raises(ToolError) as caught:
        compiled(tree)
    assert "compiling a.c failed" in caught.value.text
    assert "nonsense" in caught.value.text
    assert not list(cache.glob("*.o")) if cache.exists() else True


def test_the_first_words_of_many_are_shown(tree, cache):
    (tree / "src" / "a.c").write_text("".join(f"int a{n} = nonsense{n};\n" for n in range(200)))
    with pytest.raises(ToolError) as caught:
        compiled(tree, flags=("-ferror-limit=0",) if "clang" in CC else ())
    assert "nonsense0" in caught.value.text
    assert len(caught.value.text.splitlines()) <= 23
    assert caught.value.text.endswith("...")


def test_words_that_are_not_utf8_do_no_harm(tree, cache):
    (tree / "src" / "a.c").write_bytes(b"#error \xff\xfe\n")
    with pytest.raises(ToolError, match=r"a\.c"):
        compiled(tree)


def test_a_compiler_that_is_missing_is_named(tree, cache):
    with pytest.raises(ToolError, match="cannot start /nowhere/cc"):
        compile_all(Compiler("/nowhere/cc", "cc", ()), [Unit(tree / "src" / "a.c")], tree / "out")


@pytest.mark.parametrize("prints", ["", "int a;"])
@pytest.mark.parametrize("makes", ["", "int a;"])
def test_a_compiler_that_reports_success_and_makes_no_object_is_an_error(tree, cache, prints, makes):
    fake = tree / "fakecc"
    wanted = f'for last; do :; done; printf "{makes}" > "$last"' if makes else ":"
    fake.write_text(f'#!/bin/sh\nprintf "{prints}"\n{wanted}\n')
    fake.chmod(0o755)
    unit = Unit(tree / "src" / "a.c", (tree / "include",))
    with pytest.raises(ToolError, match="fakecc reported success, but made no object") as caught:
        compile_all(Compiler(str(fake), "fake 1", ()), [unit], tree / "out")
    assert "core.cflags" in caught.value.hint
    assert ("it printed:\nint a;" in caught.value.text) == bool(prints)
    assert not list(cache.glob("*.o"))  # it is not kept for the next time either


def test_a_compiler_that_a_signal_ends_is_told_with_the_signal(tree, cache):
    fake = tree / "fakecc"
    fake.write_text("#!/bin/sh\nkill -XFSZ $$\n")
    fake.chmod(0o755)
    with pytest.raises(ToolError, match="File size limit exceeded"):
        compile_all(Compiler(str(fake), "fake 1", ()), [Unit(tree / "src" / "a.c")], tree / "out")
