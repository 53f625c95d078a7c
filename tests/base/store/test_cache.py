"""The cache that a session uses: memory over disk, counts beside it, eviction, many processes."""

import multiprocessing
import re

import msgpack
import pytest
from paths import ROOT

from buildtool.base import session
from buildtool.base.errors import UsageError
from buildtool.base.folders import CACHE, MODE, SIZE, most_disk_bytes
from buildtool.base.locks import hold_lock
from buildtool.base.modes import Use
from buildtool.base.session import Namespace, Session
from buildtool.base.store import NAMESPACES, care, disk, notes
from buildtool.base.store.cache import Cache, open_cache
from buildtool.base.store.disk import ASIDE, evict
from buildtool.base.store.notes import COUNTS, Notes

PARTS = {"topology": "t", "ram": 4096}


def key(number):
    return f"{number:064x}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(MODE, "on")
    return tmp_path / "cache"


def filled(folder, numbers, size=1000, subject="a request"):
    """A cache into which a request has put some entries."""
    cache = Cache(folder, "code")
    cache.begin(subject)
    for number in numbers:
        cache.put("plans", key(number), bytes([number % 256]) * size)
    cache.flush()
    return cache


def found(folder, numbers):
    """Returns the numbers of the entries that another process would find."""
    cache = Cache(folder, "code")
    return [number for number in numbers if cache.get("plans", key(number), PARTS) is not None]


def test_what_is_put_is_found_by_the_next_process_after_the_answer(folder):
    cache = Cache(folder, "code")
    cache.begin("a request")
    cache.put("plans", key(1), b"data")
    assert found(folder, [1]) == []
    assert cache.get("plans", key(1), PARTS) == b"data"
    cache.flush()
    assert found(folder, [1]) == [1]


def test_off_reads_and_writes_nothing_and_renewing_reads_only_what_it_made(folder):
    filled(folder, [1])
    cache = Cache(folder, "code")
    cache.begin("off", Use.OFF)
    cache.put("plans", key(2), b"data")
    assert cache.get("plans", key(1), PARTS) is None
    cache.begin("renew", Use.RENEW)
    assert cache.get("plans", key(1), PARTS) is None
    cache.put("plans", key(1), b"renewed")
    assert cache.get("plans", key(1), PARTS) == b"renewed"
    cache.flush()
    assert found(folder, [1, 2]) == [1]
    assert Cache(folder, "code").get("plans", key(1), PARTS) == b"renewed"


def test_the_entries_used_longest_ago_go_and_four_fifths_stay(folder, monkeypatch):
    numbers = list(range(10))
    size = 1000
    for number in numbers:
        filled(folder, [number], size)
    assert found(folder, numbers) == numbers
    using = Cache(folder, "code")
    using.get("plans", key(0), PARTS)
    using.flush()
    entry_bytes = next(iter(Cache(folder, "code").disk.entries()))[2]
    monkeypatch.setenv(SIZE, str(entry_bytes * 10))
    filled(folder, [10], size)
    assert found(folder, range(11)) == [0, *range(4, 11)]
    assert sum(size for _, _, size in Cache(folder, "code").disk.entries()) <= entry_bytes * 8


def test_nobody_evicts_while_another_process_does(folder):
    import fcntl

    cache = filled(folder, [1, 2, 3])
    with (folder / "evict.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        evict(cache.disk, 0)
        assert found(folder, [1, 2, 3]) == [1, 2, 3]
    evict(cache.disk, 0)
    assert found(folder, [1, 2, 3]) == []


@pytest.mark.parametrize("damage", ["gone", "noise", "empty", "other values", "folder"])
def test_lost_or_damaged_counts_lose_no_entry_and_are_made_anew(folder, damage, monkeypatch):
    filled(folder, range(20))
    path = folder / COUNTS
    path.unlink()
    contents = {
        "noise": b"no counts" * 1000,
        "empty": b"",
        "other values": msgpack.packb({"bad": "x", 1: []}),
    }
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes(contents[damage])
    for number in (20, 21):
        filled(folder, [number])
    assert found(folder, range(22)) == list(range(22))
    assert care.stats()["levels"]["plans"]["entries"] == 22
    monkeypatch.setenv(SIZE, "5000")
    filled(folder, [22])
    assert 0 < len(found(folder, range(23))) <= 4


def test_counts_that_another_process_has_locked_are_not_waited_for_long(folder, monkeypatch):
    monkeypatch.setattr(notes, "_WAIT_SECONDS", 0.05)
    filled(folder, [1])
    with hold_lock(folder / notes.LOCK, wait=False) as mine:
        before = (folder / COUNTS).read_bytes()
        filled(folder, [2])
        assert mine is not None and (folder / COUNTS).read_bytes() == before
        assert found(folder, [1, 2]) == [1, 2]
        assert care.stats()["levels"]["plans"]["entries"] == 2
    filled(folder, [3])
    assert care.stats()["levels"]["plans"]["entries"] == 3


def test_what_was_made_while_the_code_changed_is_not_written(folder):
    cache = Cache(folder, "code", is_current=lambda: False)
    cache.put("plans", key(1), b"data")
    cache.flush()
    assert found(folder, [1]) == []


def _write_and_read(folder, first):
    cache = Cache(folder, "code")
    for number in range(first, first + 30):
        cache.begin(f"request {number % 7}")
        shared = number % 10
        data = cache.get("plans", key(shared), PARTS)
        assert data is None or data == bytes([shared]) * 3000
        cache.put("plans", key(shared), bytes([shared]) * 3000)
        cache.put("plans", key(number + 100), bytes(3000))
        cache.flush()


@pytest.mark.slow
def test_many_processes_at_once_find_right_entries_or_none(folder, monkeypatch):
    monkeypatch.setenv(SIZE, "60000")  # so that each process evicts entries of the others
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_write_and_read, args=(folder, 30 * n)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    there = sum(size for _, _, size in Cache(folder, "code").disk.entries())
    assert (Notes(folder).total() or there) >= there  # entries may be counted twice, and are never left out
    filled(folder, [99], 3000)
    entries = list(Cache(folder, "code").disk.entries())
    assert sum(size for _, _, size in entries) <= 60000
    assert care.verify()["bad"] == 0
    assert not list(folder.rglob("*.part"))


def test_two_versions_that_share_a_folder_find_each_its_own(folder, monkeypatch):
    """Neither treats the other's entries as bad ones, also in a namespace whose keys leave out the code."""
    level, made = Namespace("objects", str.encode, bytes.decode, by_code=False), []
    for version in ("1", "2", "1", "2"):
        monkeypatch.setattr(disk, "__version__", version)
        monkeypatch.setattr(session, "__version__", version)
        cache = Cache(folder, f"code of {version}")
        Session(keeper=cache).keep(level, {"a": 1}, lambda version=version: made.append(version) or version)
        assert Session(keeper=cache).load(level, {"a": 1}) == version
        cache.flush()
    assert made == ["1", "2"] and not (folder / ASIDE).exists()


def test_settings_that_make_no_sense_are_errors(folder, monkeypatch):
    for word in ("nonsense", "plans,object", "true", ",", "plans,"):
        monkeypatch.setenv(MODE, word)
        with pytest.raises(UsageError, match=MODE):
            open_cache("code")
    for text in ("nonsense", "-1", "1e9", "512Q", "9" * 30):
        monkeypatch.setenv(SIZE, text)
        with pytest.raises(UsageError, match=SIZE):
            care.stats()
    monkeypatch.setenv(SIZE, "64 KiB")
    assert most_disk_bytes() == 65536


def test_every_namespace_is_known_by_name_and_documented():
    """BUILDTOOL_CACHE may name it, and the page on rebuilds says what it contains."""
    made = set()
    for path in (ROOT / "buildtool").rglob("*.py"):
        made |= set(
            re.findall(r"""\b(?:Namespace|level)\(\s*"([a-z]+)\"""", path.read_text(encoding="utf-8"))
        )
    assert made == set(NAMESPACES)
    page = (ROOT / "docs/internals/rebuilds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)` \|", page, re.M)
    assert sorted(rows) == sorted(NAMESPACES)


def test_a_damaged_report_is_left_out_and_fails_no_request(folder):
    asked = Notes(folder).asked
    for damaged in (b"\xc1", b"", msgpack.packb(7), msgpack.packb({"reports": {"plans": {"parts": 7}}})):
        filled(folder, [1], subject="plan net on host")
        ((level, entry, _),) = asked.entries()
        asked.write(level, entry, damaged)
        cache = Cache(folder, "code")
        cache.begin("plan net on host")
        cache.get("fronts", key(5), PARTS)
        cache.flush()
        assert "fronts" in {one["level"] for one in care.explain("net")["asked"]}
        asked.write(level, entry, damaged)
        assert care.explain("net")["asked"] == []
