"""Two networks whose names are equal in C, written into one folder: the first one stays."""

import json
import os
import subprocess
import sys

import pytest

from buildtool.base.errors import UsageError
from buildtool.base.outfiles import keep_networks
from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder


def save(path, channels):
    net = NetBuilder(channels)
    path.write_bytes(write_model(net.graph([net.conv(net.input((1, 4, 4, 3)), channels)])))


def buildtool(folder, *words):
    command = [sys.executable, "-m", "buildtool", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("command", [["emit"], ["build"], ["build", "--bundle"]])
def test_the_second_network_of_a_name_is_refused_and_the_first_one_stays(tmp_path, command):
    save(tmp_path / "a-b.tflite", 2)
    save(tmp_path / "a_b.tflite", 3)
    words = [*command, "--board", "cortex-m4", "--out", "out"]
    assert buildtool(tmp_path, command[0], "a-b.tflite", *words[1:]).returncode == 0

    def contents():
        return {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}

    before = contents()
    refused = buildtool(tmp_path, command[0], "a_b.tflite", *words[1:])
    assert refused.returncode == 2, refused.stderr
    assert "'a-b'" in refused.stderr and "'a_b'" in refused.stderr and "--name" in refused.stderr
    assert contents() == before
    save(tmp_path / "a-b.tflite", 4)  # retrained: the same network in another file
    assert buildtool(tmp_path, command[0], "a-b.tflite", *words[1:]).returncode == 0
    assert buildtool(tmp_path, command[0], "a_b.tflite", *words[1:], "--name", "second").returncode == 0


def test_a_file_that_names_no_network_keeps_nothing_from_being_written(tmp_path):
    new = {"net_arena.json": json.dumps({"network": "net"}).encode(), "net.c": b""}
    for old in ("", "[]", "{}", '{"network": 3}', "[" * 100_000):
        (tmp_path / "net_arena.json").write_text(old)
        keep_networks(new, tmp_path)
    (tmp_path / "net_arena.json").write_text('{"network": "net!"}')
    with pytest.raises(UsageError, match="net!"):
        keep_networks(new, tmp_path)


@pytest.mark.slow
def test_a_second_build_takes_the_folder_of_the_first_and_gives_the_same_files(tmp_path):
    save(tmp_path / "a-b.tflite", 2)
    save(tmp_path / "a_b.tflite", 3)
    builds = []
    for _ in range(2):
        result = buildtool(tmp_path, "build", "a-b.tflite", "--board", "host", "--out", "out")
        assert result.returncode == 0, result.stderr
        builds.append({path.name: path.read_bytes() for path in sorted((tmp_path / "out").iterdir())})
    assert builds[0] == builds[1]
    assert json.loads(builds[0]["a_b_arena.json"])["network"] == "a-b"
    refused = buildtool(tmp_path, "build", "a_b.tflite", "--board", "host", "--out", "out")
    assert refused.returncode == 2 and "'a-b'" in refused.stderr, refused.stderr


@pytest.mark.slow
def test_a_program_that_is_built_can_be_run(tmp_path):
    save(tmp_path / "net.tflite", 2)
    result = buildtool(tmp_path, "build", "net.tflite", "--board", "host", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert os.access(tmp_path / "out" / "net.elf", os.X_OK)
    assert not (tmp_path / "out" / "net.c").stat().st_mode & 0o111
    for command in ("validate", "profile"):
        words = "net.tflite --board host --elf out/net.elf --plan out/net.plan"
        checked = buildtool(tmp_path, command, *words.split())
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_files_for_flash_of_an_earlier_build_do_not_stay_beside_another_one_s(tmp_path):
    """An old .hex could be flashed by mistake. Other files belong to the user."""
    save(tmp_path / "net.tflite", 2)
    out = tmp_path / "out"
    out.mkdir()
    (out / "net.hex").write_text("the user's")
    words = ["build", "net.tflite", "--board", "cortex-m4", "--out", "out"]
    assert buildtool(tmp_path, *words).returncode == 0
    assert (out / "net.hex").read_text() == "the user's"  # it is from no build
    assert buildtool(tmp_path, *words, "--format", "hex").returncode == 0
    (out / "notes.hex").write_text("the user's")
    save(tmp_path / "net.tflite", 3)
    result = buildtool(tmp_path, *words)
    assert result.returncode == 0, result.stderr
    assert "removed files of an earlier build: net.hex, net_weights.hex, net_code.hex" in result.stdout
    assert sorted(path.name for path in out.glob("*.hex")) == ["notes.hex"]
    assert (out / "net.bin").is_file() and (out / "net_weights.bin").is_file()
