"""Edited code: the next command gets a daemon of the new code, the old one ends; nothing stale is served."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from daemons import BOARDS, eventually, is_running, running
from paths import ROOT
from zeronet import Net

from buildtool.client import daemon as client
from buildtool.client import endpoint as places
from buildtool.graph.tflite.writer import write_model


@pytest.mark.slow
@pytest.mark.parametrize("asked", [False, True])
def test_an_edited_checkout_gets_a_new_daemon_and_the_old_one_ends(tmp_path, asked):
    home = tmp_path / "checkout"
    for folder in ("buildtool", "plugins", "kernels"):
        shutil.copytree(ROOT / folder, home / folder)
    net = Net((1, 8, 8, 3))
    graph = net.graph(net.dense(net.mean(net.conv(net.inputs[0], 8, (3, 3))), 4))
    (tmp_path / "net.tflite").write_bytes(write_model(graph))

    def command(*words):
        paths = os.pathsep.join(map(str, (home, home / "plugins")))
        environment = os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "buildtool", *words, "--json"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        return json.loads(done.stdout)

    def planned(*more):
        return command("front", "net.tflite", "--board", "cortex-m4", "--daemon", "require", *more)

    def status():
        return command("daemon", "status")["daemons"][0]

    def pid():
        return status().get("pid")

    with running(tmp_path):
        try:
            before = planned()
            first = pid()
            assert first and is_running(first)
            answers = home / "buildtool" / "service" / "answers" / "fronts.py"
            text = answers.read_text()
            assert text.count("target.board.name,") == 1
            # moved into place, as editors do: no half of it is ever there
            edited = answers.with_suffix(".new")
            edited.write_text(text.replace("target.board.name,", "target.board.name.upper(),"))
            old = next(at for at in places.every() if at.process()[0] == first)
            edited.replace(answers)
            if asked:  # by a client that has not seen the edit: the worker finds it before any event is told
                client.reach(old, start=False).request(BOARDS, "on", None)
            # nobody has asked yet: the old daemon starts one of the new code, which prepares the answer
            eventually(lambda: not is_running(first))
            eventually(lambda: status().get("answers") == 1)
            assert status()["counts"]["planned"] == 0
            after = planned()
            assert (status()["counts"]["planned"], status()["counts"]["from_memory"]) == (0, 1)
            assert (before["board"], after["board"]) == ("cortex-m4", "CORTEX-M4")
            assert pid() != first
            eventually(lambda: not is_running(first))
            answers.write_text(text)
            assert planned() == before
            (home / "plugins" / "buildtool_plugins" / "cortex_m" / "boards" / "mine.toml").write_text(
                'extends = "cortex-m4"\n'
            )
            assert command("front", "net.tflite", "--board", "mine", "--daemon", "require")["board"] == "mine"
        finally:
            command("daemon", "stop", "--all")
