"""A plan without options fits the board beside its firmware, or it is refused with `analyze`'s reasons."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from buildtool import api
from buildtool.api.answers.cures import fit
from buildtool.base.errors import PlanError, ToolError
from buildtool.base.session import Session
from buildtool.firmware import counting
from buildtool.firmware.bound import firmware, predicted_footprint
from buildtool.firmware.needs import needs_of
from buildtool.firmware.planned import Planned, plan_model, prepare, refuse_unless_fits
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import choose
from buildtool.plan.models import load_network
from buildtool.plan.summary.fit import available_bytes, excess_bytes
from buildtool.target.registry import board_names, load_target

handle = partial(api.handle, session=Session())  # makes a network's tables once

EVERY = slice(None)
# The smallest network on every board, two small ones on half of the boards each, large ones on a few boards.
LARGE = ("mcunet_vww5", "squeezenet", "densenet")
NETWORKS = [
    ("autoencoder", EVERY),
    *(
        pytest.param(n, slice(k, None, 2), marks=pytest.mark.slow)
        for k, n in enumerate(("ds_cnn", "resnet8"))
    ),
    *(pytest.param(n, slice(k, None, 3 * len(LARGE)), marks=pytest.mark.slow) for k, n in enumerate(LARGE)),
]


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning needs no compiler, and `analyze` counts in the same way without one."""

    def missing(*_: object) -> None:
        raise ToolError("no compiler")

    monkeypatch.setattr(counting, "toolchain", missing)


def board_file(folder: Path, base: str, ram: int) -> str:
    path = folder / "small.toml"
    path.write_text(f'extends = "{base}"\nreserved_bytes = 0\n[memory.ram]\nsize = {ram}\n')
    return str(path)


def fits(name: str, board: str, session: Session) -> bool:
    """Whether `analyze` says that a board has enough RAM for its plan."""
    prepared = prepare(load_network(name, session), load_target(board), PlanOptions(), session)
    verdict = fit(prepared, name, exactly=False)
    return not any(need.excess for need in verdict.needs if need.what == "RAM")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "boards"), NETWORKS)
def test_on_every_board_a_plan_without_options_fits_by_the_analysis_or_is_refused(
    name: str, boards: slice
) -> None:
    session = Session()
    for board in board_names()[boards]:
        try:
            result = plan_model(name, board, PlanOptions(), session)
            refuse_unless_fits(result, 0)  # other tests compare weights and code in flash with the board
        except PlanError:
            assert not fits(name, board, session), board
        else:
            assert not excess_bytes(result.target.board, result.plan), board
            assert fits(name, board, session), board


def beside(made: Planned) -> int:
    """Bytes that a plan's whole firmware takes in the arena's memory."""
    usage = predicted_footprint(made.graph, made.plan, made.target, made.session)
    assert usage is not None
    return usage.use(made.target.board.arena).bytes


@pytest.mark.parametrize("base", ["xcore", "vx4"])
def test_the_best_plan_is_made_that_fits_beside_its_own_code(tmp_path: Path, base: str) -> None:
    free = plan_model("resnet8", base, PlanOptions())
    ram = beside(free) - free.plan.alignment
    assert ram - free.target.board.stack_bytes >= free.plan.arena_bytes  # what the board's file alone leaves
    result = plan_model("resnet8", board_file(tmp_path, base, ram), PlanOptions())
    assert result.plan.arena_bytes < free.plan.arena_bytes
    assert beside(result) <= ram
    # A limit of exactly the free memory gives the same plan.
    room = available_bytes(result.target.board)
    same = plan_model("resnet8", board_file(tmp_path, base, ram), PlanOptions(ram=room))
    assert same.plan == result.plan


@pytest.mark.slow
def test_a_network_without_room_beside_its_code_is_refused_with_what_the_memory_holds(tmp_path: Path) -> None:
    board = board_file(tmp_path, "xcore", 140 * 1024)
    with pytest.raises(
        PlanError, match=r"are available beside code and constants of the kernels [\d,]+, stack"
    ) as e:
        plan_model("resnet8", board, PlanOptions())
    (verdict,) = handle({"kind": "analyze", "model": "resnet8", "boards": [board]})["boards"]
    (ram,) = (need for need in verdict["needs"] if need["what"] == "RAM")
    assert ram["excess"] > 0
    assert {part["name"] for part in ram["parts"]} > {"arena", "stack", "code and constants of the kernels"}
    assert "too many" in e.value.text


def test_what_may_fit_once_it_is_linked_is_not_refused(tmp_path: Path) -> None:
    """The bounds of code are above the linked size, so if little memory is missing, the build decides."""
    session = Session()
    roomy = board_file(tmp_path, "vx4", 512 * 1024)
    least = plan_model("autoencoder", roomy, PlanOptions(objective="ram"), session)
    code = firmware(least.graph, least.target, least.plan, session)
    lean = firmware(least.graph, least.target, least.plan, session, least=True)
    assert sum(one.bytes for one in lean) < sum(one.bytes for one in code)
    ram = least.plan.arena_bytes + sum(one.bytes for one in code if one.memory == "ram") - 256
    result = plan_model("autoencoder", board_file(tmp_path, "vx4", ram), PlanOptions())
    assert result.plan.arena_bytes == least.plan.arena_bytes
    assert result.target.board.firmware == lean
    with pytest.raises(PlanError, match="too many"):
        plan_model("autoencoder", board_file(tmp_path, "vx4", ram - 8192), PlanOptions())


@pytest.mark.parametrize("kind", ["plan", "emit"])
def test_a_limit_above_what_the_board_has_is_noted(kind: str) -> None:
    request = {"kind": kind, "model": "ds_cnn", "board": "hifive1"}
    room = handle({**request, "kind": "front"})["available_bytes"]
    (note,) = handle({**request, "options": {"ram": room + 1}})["notes"]
    assert note.startswith(
        f"{room + 1:,} bytes are allowed for the arena, and board 'hifive1' has {room:,} for it"
    )
    assert handle({**request, "options": {"ram": room}})["notes"] == []
    assert handle(request)["notes"] == []


def test_a_plan_that_is_kept_is_kept_with_its_firmware() -> None:
    session = Session()
    prepared = prepare(load_network("ds_cnn", session), load_target("xcore"), PlanOptions(), session)
    choice = choose(prepared)
    assert choice.firmware != prepared.target.board.firmware  # computed before there is a plan
    target = prepared.target.with_firmware(choice.firmware)
    footprint = predicted_footprint(prepared.graphs[0], choice.plan, target, session)
    assert footprint is not None
    needs = needs_of(footprint, choice.plan, target, 0, replace(prepared.options, ram=None))
    free = target.board.room("ram", choice.plan.state_bytes) - choice.plan.arena_bytes
    assert needs[0].available - needs[0].required == free
