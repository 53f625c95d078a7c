"""Foreign plugins that are single modules: no digest covers their code, so nothing outlives a request."""

import pytest
from daemons import eventually, running

BOARD = """
extends = "cortex-m4"
[memory.sram]
size = {size}
"""
PLUGIN = """
from pathlib import Path

class Plugin:
    name = "theirs"
    interface = 1
    toolchain = harness = run = None
    def board_files(self):
        return [Path(__file__).with_name("{board}.toml")]

plugin = Plugin()
"""


def install(folder, board, size):
    """Installs a distribution with one board."""
    (folder / "theirs-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    (folder / "theirs-1.0.dist-info" / "METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    entry = "[buildtool.targets]\ntheirs = theirs_of_a_test:plugin\n"
    (folder / "theirs-1.0.dist-info" / "entry_points.txt").write_text(entry)
    (folder / "theirs_of_a_test.py").write_text(PLUGIN.format(board=board))
    (folder / f"{board}.toml").write_text(BOARD.format(size=size))


@pytest.mark.slow
def test_another_distribution_may_come_and_change_while_a_daemon_runs(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()

    def plan(daemon, board):
        return daemon.ask({"kind": "plan", "model": "ds_cnn", "board": board})

    def size(daemon, board):
        (board_answer,) = (one for one in daemon.ask({"kind": "boards"})["boards"] if one["name"] == board)
        return next(memory["size"] for memory in board_answer["memories"] if memory["name"] == "sram")

    with running(tmp_path, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE=1) as daemon:
        assert "theirs" not in [board["name"] for board in daemon.ask({"kind": "boards"})["boards"]]
        install(folder, "theirs", 65536)
        assert size(daemon, "theirs") == 65536
        assert plan(daemon, "theirs")["board"] == "theirs"
        install(folder, "theirs", 131072)
        assert size(daemon, "theirs") == 131072
        install(folder, "changed", 65536)
        assert plan(daemon, "changed")["board"] == "changed"
        assert not [path for path in (tmp_path / "cache" / "plans").rglob("*") if path.is_file()]
        assert plan(daemon, "cortex-m4")["board"] == "cortex-m4"
        eventually(lambda: [path for path in (tmp_path / "cache" / "plans").rglob("*") if path.is_file()])
        assert daemon.counts()["crashes"] == 0
