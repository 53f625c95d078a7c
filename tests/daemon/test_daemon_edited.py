"""Edited code: the next command gets a daemon of the new code, the old one ends, and no answer is stale."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from daemons import BOARDS, PLENTY, eventually, is_running, running
from paths import ROOT
from zeronet import small

from buildtool.client import daemon as client
from buildtool.client import endpoint as places


class Checkout:
    """A copy of this checkout, which tests can edit, and a network beside it."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "checkout"
        for name in ("buildtool", "plugins", "kernels"):
            shutil.copytree(ROOT / name, self.home / name)
        (folder / "net.tflite").write_bytes(small())
        self.answers = self.home / "buildtool" / "api" / "answers" / "fronts.py"

    def command(self, *words):
        paths = os.pathsep.join(map(str, (self.home, self.home / "plugins")))
        result = subprocess.run(
            [sys.executable, "-P", "-m", "buildtool", *words, "--json"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        return json.loads(result.stdout)

    def planned(self, board="cortex-m4"):
        return self.command("front", "net.tflite", "--board", board, "--daemon", "require")

    def status(self):
        """Returns the status of the daemon that runs, or an empty one."""
        for at in places.every():
            if at.is_alive():
                with contextlib.suppress(client.AbsentError):
                    link = client.reach(at, start=False)
                    with contextlib.closing(link):
                        return link.control("status")
        return {}

    def edit(self, text):
        """Saves other code. It is moved into place, as editors do, so that no partial file is ever there."""
        edited = self.answers.with_suffix(".new")
        edited.write_text(text)
        edited.replace(self.answers)


@pytest.fixture
def checkout(tmp_path):
    edited = Checkout(tmp_path)
    try:
        with running(tmp_path, BUILDTOOL_DAEMON_AHEAD=PLENTY):
            yield edited
            edited.command("daemon", "stop", "--all")
    finally:
        for path in (tmp_path / "state").glob("*.json"):
            pid = json.loads(path.read_text())["pid"]
            if is_running(pid):
                os.kill(pid, 9)


def list_running():
    """Returns the PIDs of all daemons."""
    return {at.process()[0] for at in places.every() if at.is_alive()}


@pytest.mark.slow
def test_an_edited_checkout_gets_a_new_daemon_and_the_old_one_ends(checkout):
    """The old daemon hears of the first edit from the folder, and of the second one from a request."""
    before = checkout.planned()
    text = checkout.answers.read_text()
    assert text.count("target.board.name,") == 1
    edited = text.replace("target.board.name,", "target.board.name.upper(),")
    for content, board, is_asked in ((edited, "CORTEX-M4", False), (text, "cortex-m4", True)):
        first = checkout.status()["pid"]
        assert is_running(first)
        old = next(at for at in places.every() if at.process()[0] == first)
        checkout.edit(content)
        if is_asked:  # by a client that has not seen the edit: the worker finds it before any event
            client.reach(old, start=False).request(BOARDS, "on", None)
        # without a request the old daemon starts one of the new code, which prepares the answer
        eventually(lambda pid=first: not is_running(pid))
        eventually(lambda: checkout.status().get("answers") == 1)
        assert checkout.status()["counts"]["planned"] == 0
        after = checkout.planned()
        counts = checkout.status()["counts"]
        assert (counts["planned"], counts["from_memory"]) == (0, 1)
        assert after == {**before, "board": board}
        assert checkout.status()["pid"] != first
    boards = checkout.home / "plugins" / "buildtool_plugins" / "cortex_m" / "boards"
    (boards / "mine.toml").write_text('extends = "cortex-m4"\n')
    assert checkout.planned("mine")["board"] == "mine"


@pytest.mark.slow
def test_code_that_is_saved_again_and_again_leaves_no_daemon_that_nobody_asks(checkout):
    checkout.planned()
    first = checkout.status()["pid"]
    text = checkout.answers.read_text()
    checkout.edit(f"{text}# once\n")
    eventually(lambda: not is_running(first))
    (second,) = eventually(list_running)
    eventually(lambda: checkout.status().get("answers") == 1)
    checkout.edit(f"{text}# twice\n")  # no request came to the second one
    eventually(lambda: not is_running(second))
    time.sleep(1)  # a successor would have started
    assert list_running() == set()
    assert checkout.planned()["board"] == "cortex-m4"


@pytest.mark.slow
def test_a_successor_takes_over_how_long_nobody_has_asked(tmp_path):
    request = {"kind": "plan", "model": "ds_cnn", "board": "cortex-m4"}
    with running(tmp_path, BUILDTOOL_DAEMON_IDLE=3600) as daemon:
        link = daemon.link()
        link.prepare([(request, {})], {"idle": 3000.0, "spent": 59.9})
        assert daemon.status()["preparing"] == {"waiting": 1, "spent": 59.9, "left": 0.1}
        link.prepare([(request, {})], {"idle": 3599.9, "spent": 59.0})
        eventually(daemon.is_over)
        assert daemon.at.read_record()["ended"] == "no request came for 3600 seconds"
