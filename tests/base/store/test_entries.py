"""Entries as bytes and as files: whatever happens to them, a read gives the right bytes or nothing."""

import errno
import os
import stat
from pathlib import Path

import pytest

from buildtool.base import folders
from buildtool.base.store import disk as disks
from buildtool.base.store.disk import ASIDE, BadEntryError, Disk, pack, unpack

KEY, OTHER = "ab" * 32, "cd" * 32
PAYLOAD = b"a plan of some bytes"


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "cache")


def path_of(disk, level=KEY, name="plans"):
    return disk.folder / name / level[:2] / level[2:]


def test_an_entry_comes_back_as_it_was(disk):
    assert disk.read("plans", KEY) is None
    written = disk.write("plans", KEY, PAYLOAD)
    assert disk.read("plans", KEY) == PAYLOAD
    assert path_of(disk).stat().st_size == written
    assert stat.S_IMODE(path_of(disk).stat().st_mode) == 0o600
    assert stat.S_IMODE(disk.folder.stat().st_mode) == 0o700


def test_every_flipped_bit_and_every_cut_is_refused():
    good = pack("plans", KEY, PAYLOAD)
    assert unpack(good, "plans", KEY) == PAYLOAD
    for position in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[position] ^= 1 << bit
            with pytest.raises(BadEntryError):
                unpack(bytes(bad), "plans", KEY)
        with pytest.raises(BadEntryError):
            unpack(good[:position], "plans", KEY)
    with pytest.raises(BadEntryError):
        unpack(good + b"\0", "plans", KEY)


def test_an_entry_of_another_level_key_format_or_version_is_refused(monkeypatch):
    good = pack("plans", KEY, PAYLOAD)
    for level, key in (("fronts", KEY), ("plans", OTHER)):
        with pytest.raises(BadEntryError):
            unpack(good, level, key)
    for name, value in (("FORMAT", disks.FORMAT + 1), ("__version__", "0")):
        with monkeypatch.context() as patch, pytest.raises(BadEntryError):
            patch.setattr(disks, name, value)
            unpack(good, "plans", KEY)


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "swapped", "longer"])
def test_a_bad_file_is_a_miss_is_put_aside_and_counted(disk, damage):
    disk.write("plans", KEY, PAYLOAD)
    disk.write("plans", OTHER, b"another plan")
    path = path_of(disk)
    good, other = path.read_bytes(), path_of(disk, OTHER).read_bytes()
    bad = {"flipped": bytes([good[0] ^ 1]) + good[1:], "cut": good[:-1], "empty": b"", "swapped": other}
    path.write_bytes(bad.get(damage, good + b"x"))
    assert disk.read("plans", KEY) is None
    assert disk.counts["bad"] == 1 and not path.exists()
    assert [file.name for file in (disk.folder / ASIDE).iterdir()] == [f"plans-{KEY}"]
    assert disk.read("plans", OTHER) == b"another plan"
    disk.write("plans", KEY, PAYLOAD)
    assert disk.read("plans", KEY) == PAYLOAD


def test_a_link_in_place_of_the_folder_for_bad_entries_leads_nowhere(disk, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    disk.write("plans", KEY, PAYLOAD)
    (disk.folder / ASIDE).symlink_to(outside)
    path_of(disk).write_bytes(b"bad")
    assert disk.read("plans", KEY) is None
    assert not list(outside.iterdir()) and not path_of(disk).exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
def test_what_is_no_plain_file_of_a_right_size_is_not_read(disk, tmp_path, kind, monkeypatch):
    disk.write("plans", KEY, PAYLOAD)
    path = path_of(disk)
    data = path.read_bytes()
    path.unlink()
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(data)
        monkeypatch.setattr(disks, "MOST_BYTES", len(data) - 1)
    assert disk.read("plans", KEY) is None
    assert disk.counts["unreadable"] == 1


@pytest.mark.parametrize("who", ["group", "everybody", "stranger"])
def test_an_entry_that_somebody_else_may_have_written_is_put_aside(disk, monkeypatch, who):
    """An earlier user with access to the folder may have left it there, with a valid key and checksum."""
    disk.write("plans", KEY, PAYLOAD)
    path_of(disk).chmod({"group": 0o660, "everybody": 0o606}.get(who, 0o600))
    assert disk.trouble == ""
    if who == "stranger":
        monkeypatch.setattr(disks, "user", lambda: os.getuid() + 1)
    assert disk.read("plans", KEY) is None
    assert disk.counts["bad"] == 1 and not path_of(disk).exists()


def test_no_level_and_no_key_leads_out_of_the_folder(disk):
    for level in ("../plans", "Plans", "", "a" * 33, ASIDE):
        with pytest.raises(ValueError):
            disk.write(level, KEY, PAYLOAD)
    for key in ("../" * 20 + "abcd", "", "ab", "AB" * 32, "ab" * 31 + "/."):
        with pytest.raises(ValueError):
            disk.write("plans", key, PAYLOAD)
        disk.remove("plans", key)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_keeps_nothing_and_fails_nothing(disk, code, monkeypatch):
    disk.write("plans", OTHER, PAYLOAD)

    def refuse(path, data):
        path.write_bytes(data[:5])  # as a disk does that becomes full
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(disks, "_write", refuse)
    assert disk.write("plans", KEY, PAYLOAD) == 0
    assert disk.counts["unwritable"] == 1
    assert disk.read("plans", KEY) is None and disk.read("plans", OTHER) == PAYLOAD
    assert not list(disk.folder.rglob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder_serves_what_it_has(disk):
    disk.write("plans", KEY, PAYLOAD)
    folders_of_it = [disk.folder, *(path for path in disk.folder.rglob("*") if path.is_dir())]
    for folder in folders_of_it:
        folder.chmod(0o500)
    try:
        again = Disk(disk.folder)
        assert not again.trouble
        assert again.read("plans", KEY) == PAYLOAD
        assert again.write("plans", OTHER, PAYLOAD) == 0 and again.counts["unwritable"] == 1
    finally:
        for folder in folders_of_it:
            folder.chmod(0o700)


def test_half_written_files_of_killed_processes_are_removed_once_they_are_old(disk):
    """The same holds for files from the future, after the clock was set back."""
    disk.write("plans", KEY, PAYLOAD)
    folder = path_of(disk).parent
    young, old, later = (folder / f".{KEY[:16]}-1-{number:08x}.part" for number in range(3))
    foreign = folder / "notes.part"
    for path in (young, old, later, foreign):
        path.write_bytes(b"half")
    future = young.stat().st_mtime + 10 * 365 * 86400
    for path, when in ((old, 1), (foreign, 1), (later, future), (path_of(disk), future)):
        os.utime(path, (when, when))
    disk.sweep()
    assert young.exists() and foreign.exists() and not old.exists() and not later.exists()
    assert disk.read("plans", KEY) == PAYLOAD


def test_emptying_removes_the_caches_own_files_alone(disk):
    disk.write("plans", KEY, PAYLOAD)
    path_of(disk).write_bytes(b"bad")
    disk.read("plans", KEY)
    disk.write("fronts", OTHER, PAYLOAD)
    names = ("letter.txt", "src/main.c", "plans/readme", "plans/ab/readme", f"{ASIDE}/readme")
    foreign = [disk.folder / name for name in names]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    disk.empty()
    assert sorted(path for path in disk.folder.rglob("*") if path.is_file()) == sorted(foreign)
    assert not (disk.folder / "fronts").exists()


def test_without_a_home_there_is_no_folder(monkeypatch):
    for name in (folders.CACHE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for home in ("", "/", "relative"):
        monkeypatch.setenv("HOME", home)
        assert folders.cache_folder() is None

    def nobody():
        raise RuntimeError("could not determine home directory")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert folders.cache_folder() is None


def test_a_sockets_path_fits_from_any_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(folders.STATE, str(tmp_path / ("long" * 40)))
    path = folders.socket_path("0123456789abcdef")
    assert len(os.fsencode(path)) <= 104
    monkeypatch.setenv(folders.STATE, str(tmp_path / ("other" * 40)))
    assert folders.socket_path("0123456789abcdef") != path
