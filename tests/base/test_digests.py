"""Digests of files that were read before: a file is read again wherever it may have changed."""

import hashlib
import mmap
import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buildtool.base import digests
from buildtool.base.digests import HASH_INPUTS, MAPPED_NS, Digests, Memo, _without_times, at_rest, sha256


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("buildtool.base.digests._without_times", frozenset)  # wherever the tests run
    return tmp_path / "cache/buildtool"


class Clock:
    """The time that `Digests` reads: `ahead` of the files' times, so that the files are at rest."""

    def __init__(self):
        self.ahead = 10 * MAPPED_NS

    def __call__(self):
        return time.clock_gettime_ns(time.CLOCK_REALTIME) + self.ahead


@pytest.fixture
def clock(monkeypatch):
    clock_at_rest = Clock()
    monkeypatch.setattr("buildtool.base.digests.time.time_ns", clock_at_rest)
    return clock_at_rest


class Reads:
    """Records which files were read."""

    def __init__(self):
        self.paths: list[str] = []

    def __call__(self, path):
        self.paths.append(path)
        return sha256(path)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_bytes(b"one")
    return tmp_path / "file"


@pytest.fixture
def reads():
    return Reads()


def ask(path, reads):
    """Returns the digest that a new process would get."""
    seen = Digests("here")
    digest = seen.digest(str(path), reads)
    seen.save()
    return digest


def test_a_file_at_rest_is_read_once_and_a_changed_one_again(path, reads, clock):
    assert ask(path, reads) == ask(path, reads) == hashlib.sha256(b"one").hexdigest()
    assert len(reads.paths) == 1
    path.write_bytes(b"two")  # as long as before
    assert ask(path, reads) == hashlib.sha256(b"two").hexdigest()
    Digests("elsewhere").digest(str(path), reads)  # another scope has no record of it
    assert len(reads.paths) == 3


def test_the_same_times_and_size_do_not_hide_another_content(tmp_path, clock):
    """Unpacking and copying may set old mtimes. Only the system sets the ctime."""
    path, reads = tmp_path / "file", Reads()
    for content in (b"one", b"two"):
        path.write_bytes(content)
        os.utime(path, (1.5e9, 1.5e9))
        assert ask(path, reads) == hashlib.sha256(content).hexdigest()
    other = tmp_path / "other"
    other.write_bytes(b"six")
    os.utime(other, (1.5e9, 1.5e9))
    other.replace(path)
    assert ask(path, reads) == hashlib.sha256(b"six").hexdigest()


def test_what_was_written_within_the_clocks_grain_is_never_believed(path, reads, clock):
    for ahead in (0, MAPPED_NS // 2, -MAPPED_NS, -(10**15)):  # also where the clock was set back
        clock.ahead = ahead
        ask(path, reads)
    assert len(reads.paths) == 4
    clock.ahead = 2 * MAPPED_NS
    ask(path, reads)
    ask(path, reads)
    assert len(reads.paths) == 5


def test_a_file_that_changes_while_it_is_read_is_not_remembered(path, clock):

    def slow(name):
        digest = sha256(name)
        path.write_bytes(b"three")
        return digest

    seen = Digests("here")
    seen.digest(str(path), slow)
    assert seen.digest(str(path), lambda _: "md5 of it", "md5") == "md5 of it"  # each kind has its own record
    assert seen.digest(str(path)) == hashlib.sha256(b"three").hexdigest()


def test_what_was_made_of_the_files_asked_for_last_is_known(tmp_path, clock):
    reads = Reads()
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_text(path.name)
    memo = Memo(reads, 2)
    for index in (0, 0, 1, 0, 2, 0):
        assert memo.of(str(paths[index])) == sha256(str(paths[index]))
    assert [Path(path).name for path in reads.paths] == ["a", "b", "c"]
    paths[0].write_text("other")
    assert memo.of(str(paths[0])) == hashlib.sha256(b"other").hexdigest()


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError):
        Digests("here").digest(str(tmp_path / "pipe"))
    (tmp_path / "large").write_bytes(bytes(11))
    with pytest.raises(OSError):
        sha256(str(tmp_path / "large"), 10)


def test_what_cannot_be_read_is_an_error_and_what_cannot_be_kept_is_none(path, reads, tmp_path, clock, cache):
    with pytest.raises(OSError):
        Digests("here").digest(str(tmp_path / "none"))
    cache.parent.mkdir()
    cache.write_bytes(b"a file where the folder belongs")
    assert ask(path, reads) == ask(path, reads) == hashlib.sha256(b"one").hexdigest()
    assert len(reads.paths) == 2


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_record_is_no_record(path, reads, clock, cache, data):
    ask(path, reads)
    (record,) = (cache / "memo/digests").glob("*/*")
    whole = record.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[at] ^ data.draw(st.integers(1, 255))])
    record.write_bytes(data.draw(st.sampled_from([whole[:at], whole[:at] + flipped + whole[at + 1 :]])))
    before = len(reads.paths)
    assert ask(path, reads) == hashlib.sha256(b"one").hexdigest()
    assert len(reads.paths) == before + 1


def test_files_of_an_image_are_read_again_after_the_system_or_its_container_started(
    path, reads, clock, monkeypatch
):
    """The next image may have other content with the same times and inodes."""
    second = {"st_mtime_ns": 1_500_000_000_000_000_000, "st_ctime_ns": 1_500_000_000_000_000_000}
    of_an_image = os.stat_result(tuple(path.stat()), second)
    is_of_an_image = digests._may_be_of_an_image
    monkeypatch.setattr(digests, "_may_be_of_an_image", lambda there: is_of_an_image(of_an_image))
    read = []
    for start in ("first", "first", "second", "second", "", ""):
        monkeypatch.setattr(digests, "_system_start", lambda start=start: start)
        ask(path, reads)
        read.append(len(reads.paths))
        assert at_rest(of_an_image, clock()) == bool(start)
    assert read == [1, 1, 2, 2, 3, 4]


def store(file, content):
    """Stores to memory, without a system call."""
    file[: len(content)] = content


def test_a_second_store_through_a_memory_map_is_seen(tmp_path, clock):
    """After a first store, further stores change no time until the system has written the page."""
    path, reads = tmp_path / "file", Reads()
    path.write_bytes(b"zero")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4) as mapped:
        store(mapped, b"one.")
        before = path.stat()
        clock.ahead = MAPPED_NS // 2  # a build some seconds later, for which the file is at rest
        assert ask(path, reads) == hashlib.sha256(b"one.").hexdigest()
        store(mapped, b"two.")
        assert path.stat().st_mtime_ns == before.st_mtime_ns
        assert ask(path, reads) == hashlib.sha256(b"two.").hexdigest()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no file system in memory")
def test_files_of_a_file_system_in_memory_are_always_read(clock, cache, monkeypatch):
    """There, not even the first store through a memory map changes a time."""
    monkeypatch.setattr("buildtool.base.digests._without_times", _without_times)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path, reads = Path(folder, "file"), Reads()
        path.write_bytes(b"zero")
        for content in (b"one.", b"two."):
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 4) as mapped:
                store(mapped, content)
            assert ask(path, reads) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("value", ["1", "on"])
def test_every_file_is_read_where_the_user_wants_that(path, reads, clock, monkeypatch, value):
    ask(path, reads)
    monkeypatch.setenv(HASH_INPUTS, value)
    ask(path, reads)
    ask(path, reads)
    assert len(reads.paths) == 3
    monkeypatch.setenv(HASH_INPUTS, "0")
    ask(path, reads)
    assert len(reads.paths) == 3
