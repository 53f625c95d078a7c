"""`buildtool watch`: a round for every save, between two lines; problems are reported."""

import json
import threading

import pytest
from daemons import eventually, running
from zeronet import small

from buildtool.daemon import watcher
from buildtool.fronts.cli import main as cli
from buildtool.fronts.cli import watch


class Ended(Exception):
    """Ends the rounds of a watch as Ctrl-C does."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "net.tflite").write_bytes(small(8))
    (folder / "mine.toml").write_text('extends = "base.toml"\n')
    (folder / "base.toml").write_text('extends = "cortex-m4"\n')
    monkeypatch.chdir(folder)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.2)
    return folder


def rounds(monkeypatch, capsys, words, saves):
    """Returns the lines of each round. One of `saves` runs before each round except the first."""
    lines, remaining = [], list(saves)
    wait = watch.Files.wait

    def save_and_wait(self):
        lines.append(capsys.readouterr().out.splitlines())
        if not remaining:
            raise Ended
        threading.Timer(0.05, remaining.pop(0)).start()
        wait(self)

    monkeypatch.setattr(watch.Files, "wait", save_and_wait)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli.console, "report", lambda error, argv: (_ for _ in ()).throw(error))
        with pytest.raises(Ended):
            cli.run(["watch", "net.tflite", "--board", "mine.toml", *words])
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["off", "require"])
def test_every_save_is_planned_and_told_of_between_two_lines(project, tmp_path, monkeypatch, capsys, daemon):
    saves = [
        lambda: (project / "net.tflite").write_bytes(small(16)),
        lambda: (project / "net.tflite").write_bytes(b"not a model"),
        lambda: (project / "base.toml").write_text('extends = "cortex-m55"\n'),
        lambda: (project / "net.tflite").write_bytes(small(24)),
    ]
    with running(tmp_path) as server:
        lines = rounds(monkeypatch, capsys, ["--json", "--daemon", daemon], saves)
        if daemon == "require":
            assert server.counts()["requests"] == 5
            eventually(lambda: server.status()["leases"] == 0)
        else:
            assert not server.at.lock.exists()
    events_of = [[json.loads(line) for line in one] for one in lines]
    events = [[event["event"] for event in one] for one in events_of]
    assert events == [["begin", what, "end"] for what in ("plan", "plan", "error", "error", "plan")]
    assert [one[-1]["problems"] for one in events_of] == [0, 0, 1, 1, 0]
    first, second, last = (events_of[i][1] for i in (0, 1, 4))
    costs = {"cost", "cost_unit", "estimated_ms"}
    assert set(first) == {"event", "model", "board", "arena_bytes", "f", "flash_bytes", *costs}
    assert second["flash_bytes"] > first["flash_bytes"]
    assert last["cost"] != second["cost"]
    assert events_of[2][1]["error"]["code"] == "MODEL"
    assert events_of[2][1]["error"]["path"] == "net.tflite"


def test_people_read_what_it_is_and_what_it_was(project, monkeypatch, capsys):
    saves = [
        lambda: (project / "net.tflite").write_bytes(small(16)),
        lambda: (project / "net.tflite").write_bytes(b"no"),
    ]
    first, second, third = rounds(monkeypatch, capsys, ["--daemon", "off"], saves)
    assert first[0] == "buildtool watch: planning" and "no problems; waiting for changes" in first[-1]
    assert first[1] == "net on mine" and not any("(was" in line for line in first)
    assert [line.split()[0] for line in second if "(was" in line][-1] == "weights"
    assert third[1].startswith("net.tflite: error: ") and "1 problem; waiting for changes" in third[-1]


def test_a_touch_and_other_files_start_no_round(project):
    files = watch.Files(lambda: [str(project / "net.tflite")])
    try:
        (project / "net.tflite").touch()
        assert not files._is_changed()
        (project / "net.tflite").write_bytes(small(8))
        assert not files._is_changed()
        (project / "other").write_text("")
        assert not files._is_changed()
        (project / "part").write_bytes(small(9))
        (project / "part").replace(project / "net.tflite")
        assert files._is_changed() and not files._is_changed()
        (project / "net.tflite").unlink()
        assert files._is_changed() and not files._is_changed()
    finally:
        files.close()


def test_a_network_file_system_is_looked_at_and_that_is_said_once(project, monkeypatch, capsys):
    monkeypatch.setattr(watcher, "file_system", lambda folder: "nfs")
    assert "nfs" in watcher.FOREIGN
    saves = [lambda: (project / "net.tflite").write_bytes(small(16))]
    first, second = rounds(monkeypatch, capsys, ["--daemon", "off"], saves)
    (told,) = (line for line in first if f"no events for {project}:" in line)
    assert "(nfs) sends no events" in told
    assert not any("no events" in line for line in second)
    assert "weights" in "".join(second)


def test_once_ends_after_the_first_round_with_its_status(project, capsys):
    words = ["watch", "net.tflite", "--board", "mine.toml", "--once", "--daemon", "off"]
    assert cli.run(words) == 0
    (project / "net.tflite").write_bytes(b"no")
    assert cli.run(words) == 1
    (project / "net.tflite").unlink()
    assert cli.run(words) == 1
