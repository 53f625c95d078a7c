"""What plugins and packings of others do wrong is said, with the place, and never a traceback of ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from buildtool.api.checking.cases import network
from buildtool.base.errors import TargetError, UsageError
from buildtool.emit import blocks, packing
from buildtool.firmware.objects import reads
from buildtool.fronts.cli import main as cli
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import select
from buildtool.target.registry import asked, load_target
from buildtool.target.types import RunResult


def failing(*_words: object) -> Any:
    raise KeyError("x")


def test_a_method_that_fails_or_gives_something_else_is_named() -> None:
    with pytest.raises(TargetError, match=r"plugin 'acme' failed in run: KeyError: 'x' \(.*mistakes.py, "):
        asked("acme", "run", failing, RunResult)
    with pytest.raises(TargetError, match="plugin 'acme': run gives None"):
        asked("acme", "run", lambda: None, RunResult)
    with pytest.raises(KeyError):  # of ours it is an internal error, which is to be reported
        asked("host", "run", failing, RunResult)


@pytest.mark.parametrize(
    ("build", "says"), [(failing, "failed: KeyError: 'x' "), (lambda *_: "abc", "made no bytes but 'str'")]
)
def test_a_packing_that_fails_or_makes_no_bytes_is_named(
    tmp_path: Path, monkeypatch: Any, build: Any, says: str
) -> None:
    graph = network(OpKind.CONV_2D, 3, among=False)
    kernel = replace(select(load_target("host"), graph, graph.ops[0]), packer=tmp_path / "packing.py")
    monkeypatch.setattr(packing, "packings", lambda _file: {kernel.packing: build})
    with pytest.raises(TargetError, match=says) as raised:
        packing.pack(graph, graph.ops[0], kernel)
    assert "not in the network" in raised.value.hint


def test_a_packing_of_ours_that_fails_is_an_internal_error(monkeypatch: Any, capsys: Any) -> None:
    """Which is to be reported, with the operator and the trace: the command ends with 70, and not with 1."""

    def overflows(*_words: object) -> bytes:
        return blocks.words(1 << 31)

    monkeypatch.setattr(packing, "packings", lambda _file: {"conv_plain": overflows})
    assert cli.run(["emit", "ds_cnn", "--board", "host", "--out", "unused"]) == cli.INTERNAL
    said = capsys.readouterr().err
    assert "internal error: OverflowError" in said
    assert "please report it" in said
    assert "#0 CONV_2D" in said


def test_a_source_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(TargetError, match="which is not there"):
        reads(tmp_path / "a.c", ())


def test_boards_without_kernels_of_the_plugin_are_not_equal(monkeypatch: Any) -> None:
    from buildtool.api.checking import check

    made = check.registry.make_target
    monkeypatch.setattr(check.registry, "make_target", lambda board: replace(made(board), kernels=()))
    from buildtool.api import handle

    with pytest.raises(UsageError, match="no kernels of a family of its own"):
        handle({"kind": "target", "plugin": "xtensa"})
