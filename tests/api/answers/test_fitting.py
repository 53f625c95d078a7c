"""`analyze` agrees with the linker: whether firmware fits, and how many bytes are missing."""

import pytest
from paths import ROOT

from buildtool.api import handle
from buildtool.base.errors import PlanError, ToolError
from buildtool.base.session import Session
from buildtool.emit.sources import emit
from buildtool.firmware import counting
from buildtool.firmware.bound import bound
from buildtool.firmware.counting import link_footprint
from buildtool.firmware.planned import prepare
from buildtool.options.values import PlanOptions
from buildtool.plan.choose.choose import nearest
from buildtool.plan.models import load_network
from buildtool.target.recorded import recorded_sizes
from buildtool.target.registry import board_names, load_board, load_target, toolchain

NET = "autoencoder"
LINKED = [name for name in board_names() if (e := load_board(name).emulator) is None or e.kind != "native"]


def verdict(board, model=NET):
    """The verdict on a named board."""
    (row,) = handle({"kind": "analyze", "model": model, "boards": [board]})["boards"]
    return dict(row)


def smaller(folder, board, memory, size):
    """A board file with another size of one memory."""
    path = folder / f"small_{size}.toml"
    path.write_text(f'extends = "{board}"\n[memory.{memory}]\nsize = {size}\n')
    return str(path)


def build(board):
    return dict(handle({"kind": "build", "model": NET, "board": board}))


@pytest.mark.slow
def test_code_counts_and_the_bytes_that_are_missing_are_those_that_the_linker_names(tmp_path):
    board = smaller(tmp_path, "cortex-m4", "flash", 8192)
    answer = verdict(board)
    (need,) = (need for need in answer["needs"] if need["memory"] == "flash")
    assert not answer["fits"]
    with pytest.raises(ToolError, match=rf"is {need['excess']} bytes too small: it needs {need['required']}"):
        build(board)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ram", "flash"])
def test_firmware_fits_into_exactly_what_it_needs_and_into_no_byte_less(tmp_path, memory):
    """Stack guard, variables, the bytes around the arena and the gaps between sections count."""
    needs = verdict("nucleo-f412zg")["needs"]
    (required,) = (need["required"] for need in needs if need["memory"] == memory)
    fitting = smaller(tmp_path, "nucleo-f412zg", memory, required)
    assert verdict(fitting)["fits"]
    sizes = {entry["memory"]: entry for entry in build(fitting)["sizes"]}
    assert sizes[memory]["used"] <= sizes[memory]["size"] == required
    short = smaller(tmp_path, "nucleo-f412zg", memory, required - 1)
    assert not verdict(short)["fits"]
    # Weights that would not even fit without code are refused before anything is compiled.
    with pytest.raises((PlanError, ToolError), match=r"1 bytes too small|1 too many"):
        build(short)


def footprints(model, board, name=""):
    """The linked footprint, and the bound from the recorded sizes of its compiler."""
    session, target = Session(), load_target(board)
    network = load_network(model, session)
    graph, plan = nearest(prepare(network, target, PlanOptions(), session))
    sources = emit(graph, plan, target, network.model.name, session)
    tools = toolchain(target, name)
    exact = link_footprint(sources, plan, target, tools)
    return exact, bound(sources, plan, target, exact.compiler)


CASES = [
    (NET, "cortex-m4", ""),
    (NET, str(ROOT / "examples/mlperf_tiny/boards/nucleo-l4r5zi-ram.toml"), ""),
    pytest.param("ds_cnn", "qemu-virt-rv32v", "", marks=pytest.mark.slow),
    pytest.param("resnet8", "nucleo-f767zi", "gcc", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("model", "board", "name"), CASES)
def test_a_bound_from_recorded_sizes_is_at_most_a_tenth_above_what_is_linked(model, board, name):
    exact, above = footprints(model, board, name)
    assert exact.exact
    assert above is not None
    assert not above.exact
    for use in exact.uses:
        assert use.bytes <= above.use(use.memory).bytes <= 1.1 * use.bytes, (use, above.use(use.memory))
        assert sum(part.bytes for part in use.parts) == use.bytes


def test_without_a_compiler_the_answer_is_a_bound_and_says_so(monkeypatch):
    exact = verdict("cortex-m4")

    def find_no_compiler(*_):
        raise ToolError("clang was not found")

    monkeypatch.setattr(counting, "toolchain", find_no_compiler)
    bounded = verdict("cortex-m4")
    assert exact["counted"]["how"] == "linked"
    assert bounded["counted"]["how"] == "bound"
    assert bounded["counted"]["note"] == "clang was not found"
    pairs = zip(exact["needs"], bounded["needs"], strict=True)
    assert all(one["required"] <= other["required"] for one, other in pairs)
    assert sum(need["required"] for need in exact["needs"]) < sum(n["required"] for n in bounded["needs"])


@pytest.mark.parametrize("board", LINKED)
def test_every_kernel_of_every_board_is_recorded_for_the_default_compiler(board):
    target = load_target(board)
    default = target.board.toolchains[0]
    entries = [entry for entry in recorded_sizes(target.board.core) if entry.toolchain == default]
    assert entries
    for entry in entries:
        for callee in (*target.kernels, *target.routines):
            assert callee.symbol in entry.stack
            assert set(callee.sources) <= set(entry.code)
