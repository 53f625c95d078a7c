"""What networks check in the field: damaged weights, arenas and guards are found, on the host and in QEMU."""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path

import numpy as np
import pytest
from litert import interpreter
from loaded import SLOW_WEIGHTS, load_target, twin
from paths import TESTS
from test_guards import chain, pair, remembering

from buildtool.api import handle
from buildtool.base.errors import BuildtoolError
from buildtool.base.modes import Guards
from buildtool.base.session import Session
from buildtool.emit.golden import Checks, Golden, crc_of_outputs, made_up
from buildtool.emit.sources import emit
from buildtool.firmware.firmware import build_firmware
from buildtool.firmware.planned import plan_model
from buildtool.firmware.run.validation import SANITIZERS
from buildtool.firmware.tools import harness, toolchain
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.codec import digest
from buildtool.plan.summary.fit import rooms
from buildtool.target.choice import load_board, with_arena_in
from buildtool.target.registry import plugin
from buildtool.target.types import RunRequest
from buildtool.zoo import build as build_file

ROWS = {"image": "stream", "objective": "ram"}
FORMS = {  # network, board, options
    "given": (pair, "host", {}),
    "rows": (chain, "host", ROWS),
    "state": (remembering, "host", ROWS),
    "slow": (chain, "slow.toml", {}),
    "twin": (chain, "twin.toml", {}),
    "hops": (None, "host", {"hop": 2}),
    "given on a board": (pair, "cortex-m4", {}),
    "rows on a board": (chain, "cortex-m4", ROWS),
    "state on a board": (remembering, "cortex-m55", ROWS),
}
GUARD = "a guard word beside the arena was overwritten"
EARLY = "the network is not initialised"
FOUND = [
    *(f"early: {EARLY}", f"guards early: {EARLY}", "init: success"),
    *("self-test: success", "again: success", "guards: success"),
    "flipped: the weight image is damaged",
    "damaged: the golden input gives another output",
    "mended: success",
    *(f"below: {GUARD}", f"above: {GUARD}"),
    "retrained: the golden output is of other weights",
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_each_fault_is_found_and_has_its_status(form: str, tmp_path: Path) -> None:
    network, board, options = FORMS[form]
    (tmp_path / "slow.toml").write_text(SLOW_WEIGHTS)
    (tmp_path / "twin.toml").write_text(twin(1400, 2048))
    board = str(tmp_path / board) if board.endswith(".toml") else board
    planned = None if network else plan_model("ds_cnn", "host", PlanOptions(**options), Session())
    graph, target = planned.graph if planned else rewrite(network(3)), load_target(board)
    if form == "twin":
        target = dataclasses.replace(target, board=with_arena_in(target.board, "ram,fast"))
    plan = planned.plan if planned else make_plan(graph, target, PlanOptions(**options))
    assert bool(plan.loads) == (form == "slow") and len(plan.arenas) == 1 + (form == "twin")
    assert any(region.is_streamed for region in plan.regions) == (options == ROWS)
    size = sum(graph.tensors[t].size for t in graph.inputs)
    golden = Golden(9, b"", crc_of_outputs(graph, made_up(9, size)))
    sources = emit(graph, plan, target, "net", checks=Checks(Guards.INVOKE, golden))
    tools = toolchain(TargetChoice(board), target)
    own = harness(target.board, tools)
    main = tuple(TESTS / "emit/field.c" if one.name == "harness.c" else one for one in own.sources)
    flags = SANITIZERS if target.board.is_native and not plan.loads else ()  # constants are damaged
    own = dataclasses.replace(own, sources=main)
    firmware = build_firmware(sources, plan, target, tools, tmp_path / "made", flags, own_harness=own)
    result = plugin(target.board).run(target.board, firmware.elf, RunRequest({}, (), timeout=60.0))
    lines = [line for line in result.text.splitlines() if ": " in line]
    assert lines == [*FOUND, f"version: {plan.topology} {digest(plan)}"]


def asked(**values: object) -> dict[str, bytes]:
    """The files of ds_cnn for the host, with checks."""
    answer: dict[str, bytes] = handle(
        {"kind": "emit", "model": "ds_cnn", "board": "host", "name": "net", **values}
    )["files"]
    return answer


def test_without_checks_nothing_is_emitted_for_them_and_with_them_the_plan_is_the_same() -> None:
    plain, guarded, tested = asked(), asked(guards="call"), asked(self_test=3, guards="none")
    assert b"guard" not in plain["net.c"] and b"golden" not in plain["net.c"]
    for files in (guarded, tested):
        changed = {name for name in plain if plain[name] != files[name]}
        assert changed <= {"net.c", "net.h", "harness_net.h"} and plain.keys() == files.keys()
    assert b"net_check_guards()" not in guarded["net.c"] and b"nn_status net_check_guards" in guarded["net.h"]


def test_a_golden_input_of_a_file_has_litert_s_output(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(-128, 128, (1, 49, 10, 1), np.int8)
    np.save(tmp_path / "golden.npy", values)
    engine = interpreter(build_file("ds_cnn"))
    engine.set_tensor(engine.get_input_details()[0]["index"], values)
    engine.invoke()
    crc = zlib.crc32(engine.get_tensor(engine.get_output_details()[0]["index"]).tobytes())
    source = asked(golden=str(tmp_path / "golden.npy"))["net.c"].decode()
    assert f"crc == 0x{crc:08X}U" in source
    array = source.split("golden_input[] = {")[1].split("}")[0]
    assert [int(number) for number in array.split(",")] == values.ravel().view(np.uint8).tolist()
    with pytest.raises(BuildtoolError, match="shape") as caught:
        np.save(tmp_path / "golden.npy", values[:, 1:])
        asked(golden=str(tmp_path / "golden.npy"))
    assert caught.value.path == str(tmp_path / "golden.npy")


@pytest.mark.slow
def test_golden_inputs_that_cannot_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pair.tflite").write_bytes(write_model(pair(1)))
    np.save(tmp_path / "golden.npy", np.zeros((1, 6, 5, 4), np.int8))
    golden = {"golden": str(tmp_path / "golden.npy")}
    for values, says in (
        ({**golden, "self_test": 1}, "needs no seed"),
        ({"golden": "golden"}, "a path in a request must be absolute"),
        ({**golden, "model": str(tmp_path / "pair.tflite")}, "the network has 2 inputs"),
        ({**golden, "options": {"hop": 2}}, "a moving window"),
        ({"board": "xcore", "requantise": "vpu16", "self_test": 1}, "not the reference's"),
    ):
        with pytest.raises(BuildtoolError, match=says):
            asked(**values)


def test_guards_have_room_beside_the_arena_or_are_refused(tmp_path: Path) -> None:
    arena, board = 11_840, tmp_path / "tight.toml"  # layer by layer
    board.write_text(twin(20_000, 64))
    taken = 20_000 - rooms(load_board(str(board)))[0]
    for spare, fits in ((16, False), (32, True)):
        board.write_text(twin(arena + taken + spare, 64))
        values = {"board": str(board), "options": {"strategy": "layerwise"}}
        asked(**values)
        if fits:
            assert f"NET_ARENA_BYTES {arena + 32}\n".encode() in asked(**values, guards="call")["net.h"]
            continue
        with pytest.raises(BuildtoolError, match="32 bytes of guards do not fit") as caught:
            asked(**values, guards="call")
        assert "guards" in str(caught.value.hints)
