"""A command writes a set of files: all of them, or the old files stay. No other files are left."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from buildtool.base import outfiles
from buildtool.base.errors import UsageError

SET = {"a.c": b"new a", "sub/b.h": b"new b", "c.bin": b"new c" * 2000}


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_set_replaces_what_was_there_with_the_usual_permissions(tmp_path):
    (tmp_path / "a.c").write_text("old")
    before = os.umask(0o027)
    try:
        assert outfiles.write(SET, tmp_path) == ["a.c", "c.bin", "sub/b.h"]
    finally:
        os.umask(before)
    assert contents(tmp_path) == SET
    assert (tmp_path / "a.c").stat().st_mode & 0o777 == 0o640


def test_a_file_that_grows_over_the_limit_leaves_the_old_set(tmp_path):
    code = """
import resource, sys
from pathlib import Path
from buildtool.base import outfiles
from buildtool.base.errors import UsageError
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    outfiles.write({"a.c": b"new", "sub/deep/b.h": b"new", "c.bin": bytes(10000)}, Path(sys.argv[1]))
except UsageError as error:
    print(error)
"""
    old = {"a.c": b"old", "c.bin": b"old"}
    outfiles.write(old, tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert "c.bin: error: cannot write: File too large [USAGE]" in result.stdout
    assert contents(tmp_path) == old
    assert not (tmp_path / "sub").exists()


@pytest.mark.parametrize("place", ["a.c", "sub/b.h", "c.bin"])
def test_where_one_name_is_a_folder_no_file_of_the_set_gets_its_name(tmp_path, place):
    outfiles.write({name: b"old" for name in SET if name != place}, tmp_path)
    (tmp_path / place).mkdir(parents=True)
    before = contents(tmp_path)
    with pytest.raises(UsageError, match="cannot write: Is a directory") as caught:
        outfiles.write(SET, tmp_path)
    assert caught.value.path == str(tmp_path / place)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("failing", range(3))
def test_a_rename_that_fails_takes_back_those_before_it(tmp_path, failing, monkeypatch):
    old = {"a.c": b"old a", "sub/b.h": b"old b"}  # there is no c.bin
    outfiles.write(old, tmp_path)
    replace, renamed = Path.replace, list[Path]()

    def replaced(path, target):
        if path.suffix == ".part":
            if len(renamed) == failing:
                raise OSError(5, "Input/output error")
            renamed.append(target)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    with pytest.raises(UsageError, match="Input/output error"):
        outfiles.write(SET, tmp_path)
    assert contents(tmp_path) == old


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(outfiles, "alone", interrupted)
    with pytest.raises(KeyboardInterrupt):
        outfiles.write(SET, tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


def test_builds_into_one_folder_at_once_all_succeed_and_one_s_set_remains(tmp_path):
    sets = [{name: bytes([n]) * 5000 for name in SET} for n in range(8)]
    failed: list[BaseException] = []

    def write(one):
        try:
            for _ in range(5):
                outfiles.write(one, tmp_path)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(one,)) for one in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert contents(tmp_path) in sets


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes with names")
def test_devices_pipes_and_open_files_are_not_replaced(tmp_path):
    """Otherwise `--trace /dev/full` by root would replace the device by a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    before = sorted(tmp_path.iterdir())
    for name in ("pipe", "null", "stdout"):
        with pytest.raises(UsageError, match="a device or a pipe") as caught:
            outfiles.write({"first": b"new", name: b"new"}, tmp_path)
        assert caught.value.path == str(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "null").is_symlink() and (tmp_path / "stdout").is_symlink()
