"""Two networks whose names are equal in C, written into one folder: the first one stays."""

import json

import pytest

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_networks
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder


def save(path, channels):
    net = NetBuilder(channels)
    path.write_bytes(write_model(net.graph([net.conv(net.input((1, 4, 4, 3)), channels)])))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a command line in the test's folder. Returns its status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        status = cli.run(words)
        return status, capsys.readouterr()

    return run


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("command", [["emit"], ["build"], ["build", "--bundle"]])
def test_the_second_network_of_a_name_is_refused_and_the_first_one_stays(tmp_path, run, command):
    save(tmp_path / "a-b.tflite", 2)
    save(tmp_path / "a_b.tflite", 3)
    words = [*command[1:], "--board", "cortex-m4", "--out", "out"]
    assert run(command[0], "a-b.tflite", *words)[0] == 0
    before = contents(tmp_path / "out")
    status, printed = run(command[0], "a_b.tflite", *words)
    assert status == 2, printed.err
    assert "'a-b'" in printed.err and "'a_b'" in printed.err and "--name" in printed.err
    assert contents(tmp_path / "out") == before
    save(tmp_path / "a-b.tflite", 4)  # retrained: the same network in another file
    assert run(command[0], "a-b.tflite", *words)[0] == 0
    assert run(command[0], "a_b.tflite", *words, "--name", "second")[0] == 0


def test_a_file_that_names_no_network_keeps_nothing_from_being_written(tmp_path):
    new = {"net_arena.json": json.dumps({"network": "net"}).encode(), "net.c": b""}
    for old in ("", "[]", "{}", '{"network": 3}', "[" * 100_000):
        (tmp_path / "net_arena.json").write_text(old)
        keep_networks(new, tmp_path)
    (tmp_path / "net_arena.json").write_text('{"network": "net!"}')
    with pytest.raises(UsageError, match="net!"):
        keep_networks(new, tmp_path)


@pytest.mark.slow
def test_files_for_flash_of_an_earlier_build_do_not_stay_beside_another_one_s(tmp_path, run):
    """An old .hex could be flashed by mistake. Other files belong to the user."""
    save(tmp_path / "net.tflite", 2)
    out = tmp_path / "out"
    out.mkdir()
    (out / "net.hex").write_text("the user's")
    words = ["build", "net.tflite", "--board", "cortex-m4", "--out", "out"]
    assert run(*words)[0] == 0
    assert (out / "net.hex").read_text() == "the user's"  # it is from no build
    assert run(*words, "--format", "hex")[0] == 0
    (out / "notes.hex").write_text("the user's")
    save(tmp_path / "net.tflite", 3)
    status, printed = run(*words)
    assert status == 0, printed.err
    assert "removed files of an earlier build: net.hex, net_weights.hex, net_code.hex" in printed.out
    assert sorted(path.name for path in out.glob("*.hex")) == ["notes.hex"]
    assert (out / "net.bin").is_file() and (out / "net_weights.bin").is_file()
