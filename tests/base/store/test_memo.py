"""The memo of builds: in its own folder, which only the user can write, and up to a size limit."""

import os

import pytest

from buildtool.base import folders
from buildtool.base.store import disk

KEYS = [f"{number:064x}" for number in range(30)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "buildtool/memo"


def test_what_others_can_write_is_not_believed(folder):
    assert disk.recall("digests", KEYS[0]) is None and not folder.exists()
    disk.keep("digests", KEYS[0], b"content")
    assert disk.recall("digests", KEYS[0]) == b"content"
    folder.chmod(0o720)
    assert disk.recall("digests", KEYS[0]) is None
    disk.keep("digests", KEYS[1], b"content")
    folder.chmod(0o700)
    assert [disk.recall("digests", key) for key in KEYS[:2]] == [b"content", None]


def test_the_memo_does_not_grow_for_ever_and_its_newest_entries_stay(folder, monkeypatch):
    """Each entry counts as one block of the disk at least: a million small files are large as well."""
    monkeypatch.setattr(disk, "MEMO_BYTES", 10 * 4096)
    for number, key in enumerate(KEYS):
        disk.keep("digests", key, b"content")
        (entry,) = folder.glob(f"digests/*/{key[2:]}")
        os.utime(entry, (number, number))
    numbers = [number for number, key in enumerate(KEYS) if disk.recall("digests", key)]
    assert numbers == list(range(numbers[0], 30)) and 8 <= len(numbers) <= 11

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "")  # without a home nothing is kept
    assert folders.memo_folder() is None
    disk.keep("digests", KEYS[0], b"content")
    assert disk.recall("digests", KEYS[0]) is None
