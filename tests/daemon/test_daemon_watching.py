"""Changed files: the next answer is prepared and comes from memory. A touch prepares nothing."""

import time

import msgpack
import pytest
from daemons import PLENTY, eventually, running
from zeronet import small

from buildtool.api import handle
from buildtool.client.files import Located
from buildtool.daemon import watcher as watching
from buildtool.daemon.watcher import MOST_REQUESTS, Watcher


def located(folder, **more):
    request = {"kind": "plan", "model": "net.tflite", "board": "mine.toml", **more}
    return Located(request, str(folder)).request


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "net.tflite").write_bytes(small(8))
    (folder / "mine.toml").write_text('extends = "base.toml"\n')
    (folder / "base.toml").write_text('extends = "cortex-m4"\n[memory.sram]\nsize = 65536\n')
    return folder


def wait_until_idle(daemon):
    """Returns the daemon's counts once it has nothing left to do."""
    eventually(lambda: all(w["doing"] == "idle" for w in daemon.status()["workers"]))
    return daemon.counts()


def changes(daemon):
    return daemon.status()["watched"]["changes"]


@pytest.mark.slow
def test_a_saved_files_next_answer_is_prepared_and_comes_from_memory(tmp_path, project):
    with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY) as daemon:
        daemon.ask(located(project))
        watched = daemon.status()["watched"]
        assert set(watched["files"]) > set(map(str, project.iterdir()))  # also the board that they extend
        assert watched["without_events"] == {}

        def saved(save):
            """Returns how many answers a save has prepared, and how many came from memory."""
            before = wait_until_idle(daemon)
            number = changes(daemon)
            save()
            eventually(lambda: changes(daemon) > number)
            eventually(lambda: daemon.counts()["prepared"] > before["prepared"])
            prepared = wait_until_idle(daemon)
            answer = daemon.ask(located(project))
            assert msgpack.packb(answer) == msgpack.packb(handle(located(project)))
            after = wait_until_idle(daemon)
            assert after["planned"] == before["planned"]
            return prepared["prepared"] - before["prepared"], after["from_memory"] - before["from_memory"]

        def replaced():
            (project / "part").write_bytes(small(24))
            (project / "part").replace(project / "net.tflite")

        assert saved(lambda: (project / "net.tflite").write_bytes(small(16))) == (1, 1)
        assert saved(replaced) == (1, 1)
        base = 'extends = "cortex-m4"\n[memory.sram]\nsize = 49152\n'
        assert saved(lambda: (project / "base.toml").write_text(base)) == (1, 1)

        before, number = wait_until_idle(daemon), changes(daemon)
        (project / "net.tflite").touch()
        (project / "net.tflite").write_bytes((project / "net.tflite").read_bytes())
        (project / "other.txt").write_text("of no account")
        (project / "net.tflite").chmod(0o600)
        time.sleep(0.6)
        assert wait_until_idle(daemon) == before and changes(daemon) == number

        (project / "net.tflite").unlink()
        (project / "net.tflite").write_bytes(b"not a model")
        eventually(lambda: changes(daemon) > number)
        (project / "net.tflite").write_bytes(small(8))  # the prepared error answers no request
        assert daemon.ask(located(project))["model"] == "net"


@pytest.fixture
def at_once(monkeypatch):
    """Every check looks at sizes and times, and nothing waits."""
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(watching, "SETTLE_SECONDS", 0.0)


def make_watcher(project, **more):
    watcher = Watcher(lambda: None)
    watcher.remember(located(project, **more), {})
    return watcher


def refuse(*about):
    raise OSError(28, "inotify watch limit reached")


@pytest.mark.parametrize(
    ("name", "replaced", "why"),
    [
        ("file_system", lambda folder: "nfs4", "its file system (nfs4) sends no events"),
        ("Events._schedule", refuse, "inotify watch limit reached"),
        ("Events.listen", lambda *about: "", "events were lost"),
    ],
)
def test_without_events_a_look_finds_a_change_and_why_is_said_once(
    project, at_once, monkeypatch, capsys, name, replaced, why
):
    monkeypatch.setattr(f"{watching.__name__}.{name}", replaced)
    watcher = make_watcher(project)
    for channels in (16, 24):
        (project / "net.tflite").write_bytes(small(channels))
        for _ in range(2):
            watcher.poll(0.0)
        assert [request for request, _ in watcher.changed()] == [located(project)]
    watcher.poll(0.0)
    assert why in watcher.status()["without_events"][str(project)]
    assert capsys.readouterr().out.count("no events for") == 1


def test_a_file_that_is_being_written_is_waited_for(project, monkeypatch):
    watcher = make_watcher(project)
    (project / "net.tflite").write_bytes(small(16)[:100])
    eventually(lambda: watcher.is_hinted)
    assert not list(watcher.changed())  # too soon
    (project / "net.tflite").write_bytes(small(16))
    ((request, _),) = eventually(lambda: list(watcher.changed()), 5)
    assert request == located(project)
    watcher.stop()


def test_what_is_watched_is_bounded_by_the_requests_that_are_remembered(tmp_path, monkeypatch):
    watcher = Watcher(lambda: None)
    for number in range(MOST_REQUESTS + 10):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "net.tflite").write_bytes(b"%d" % number)
        watcher.remember(located(folder, board="host"), {})
    assert len(watcher.status()["files"]) == MOST_REQUESTS
    assert len(watcher._folders) == len(watcher._events.watches) == len(watcher._stamps) == MOST_REQUESTS
    watcher.stop()


def test_file_systems_are_known_by_their_longest_mount(tmp_path, monkeypatch):
    mounts = "none / ext4 rw 0 0\nserver:/x /home/my\\040files nfs4 rw 0 0\nnone /home tmpfs rw 0 0\n"

    class Mounts:
        def __init__(self, name):
            assert name == "/proc/mounts"

        def read_text(self, errors):
            return mounts

    monkeypatch.setattr(watching, "Path", Mounts)
    kinds = {
        "/": "ext4",
        "/home": "tmpfs",
        "/homeless": "ext4",
        "/home/my files/a": "nfs4",
        "/home/my": "tmpfs",
    }
    assert {folder: watching.file_system(folder) for folder in kinds} == kinds
