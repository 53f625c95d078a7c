"""Whole networks on boards, in emulators and on the host: every tensor equals LiteRT's reference kernels.

What the boards' kernels do one by one is asked in tests/kernels, and random networks run on the host
(test_drawn_networks.py).
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from boardruns import Run, exact, file_of, validated
from namednets import (
    audio,
    blazeface,
    channel_moves,
    efficient_net,
    every_view,
    gated_halves,
    pyramid,
    split_network,
    u_net,
    wired,
)
from narrownets import narrow_network, wide_network
from nativebatch import streamed_kinds
from needs import needs_shared, needs_tool
from yolonets import yolo_v8

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.emit.image import weight_image
from buildtool.firmware.planned import plan_model
from buildtool.graph.fusions import fusions
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind, WeightedAttrs
from buildtool.options.values import PlanOptions
from buildtool.plan.codec import from_bytes
from buildtool.target.registry import load_board

slow = pytest.mark.slow
LAYERWISE = {"strategy": "layerwise"}


def shared(name: str) -> str:
    return str(needs_shared(f"models/{name}.tflite"))


def is_streamed(run: Run) -> bool:
    return any(region.is_streamed for region in run.plan.regions)


# Layer by layer; the other shared files run in the least memory.


@slow
@pytest.mark.parametrize(
    ("name", "board", "inputs"),
    [
        ("mcunet_vww5", "cortex-m55", 1),
        ("mlperf_ad", "cortex-m4", 1),
        ("mlperf_kws", "qemu-virt-rv32v", 2),
        ("mlperf_resnet8", "qemu-virt-rv32v256", 2),
        ("mlperf_vww96", "qemu-virt-rv32", 2),
    ],
)
def test_trained_networks_layer_by_layer(name, board, inputs):
    assert exact(shared(name), board, LAYERWISE, inputs=inputs).level == "emulator"


@slow
def test_a_trained_network_on_the_esp8266():
    needs_tool("xtensa-lx106-elf-gcc")
    needs_tool("qemu-system-xtensa")
    run = exact(shared("mlperf_kws"), "esp8266", {"image": "stream"})
    assert run.level == "emulator"
    assert run.outcome.arena_high_water + run.outcome.stack_high_water < 80 << 10


# In the least memory: rows stream.


@slow
@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("mcunet_320k_imagenet", "cortex-m4"),
        ("mlperf_vww96", "cortex-m55"),
    ],
)
def test_trained_networks_in_the_least_memory(name, board):
    assert is_streamed(exact(shared(name), board, {"objective": "ram", "image": "stream"}))


@slow
@pytest.mark.parametrize(("name", "board"), [("resnet8", "cortex-m55"), ("densenet", "cortex-m4")])
def test_networks_of_branches_in_the_least_memory(name, board):
    assert is_streamed(exact(name, board, {"objective": "ram", "image": "stream"}))


ENLARGING = {OpKind.RESIZE_BILINEAR, OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.TRANSPOSE_CONV}


@slow
@pytest.mark.parametrize(
    ("board", "image", "graph", "streamed"),
    [
        ("cortex-m55", "stream", u_net(17, 4, 2, "half", rows=30), ENLARGING),
        ("cortex-m55", "overwritable", pyramid(32, 4, "bilinear"), ENLARGING),
        ("cortex-m4", "overwritable", channel_moves(), set(OpKind)),
        ("cortex-m55", "resident", blazeface(48), set(OpKind)),
        ("cortex-m4", "resident", audio(), set(OpKind)),  # overwritable: its tensors move, see below
        ("cortex-m4", "overwritable", wired(), {OpKind.ADD}),
    ],
)
def test_topologies_that_users_bring_in_the_least_memory(board, image, graph, streamed, tmp_path):
    run = exact(
        file_of(graph, tmp_path), board, {"objective": "ram", "image": image, "simplify": "structure"}
    )
    assert streamed & streamed_kinds([run.made])


@slow
def test_a_detector_that_decodes_each_map_by_itself(tmp_path):
    model, least = file_of(yolo_v8(64, 8, 80), tmp_path), {"objective": "ram", "image": "stream"}
    run = exact(model, "cortex-m4", {**least, "simplify": "structure"})
    assert OpKind.TRANSPOSE in streamed_kinds([run.made])
    assert run.plan.arena_bytes < 0.8 * (64 + 80) * (16 * 16 + 8 * 8 + 4 * 4)  # bytes of the joined maps


@slow
def test_a_network_whose_tensors_move():
    asked = {"ram": 4_000, "image": "overwritable", "max_f": 1.05}
    run = exact("mobilenetv2:size=32,alpha=0.35,classes=10", "host", asked)
    assert run.plan.moves and is_streamed(run)
    assert run.plan.arena_bytes <= 4_000


@slow
def test_a_network_whose_tensors_move_in_the_least_memory(tmp_path):
    asked = {"objective": "ram", "image": "overwritable", "simplify": "structure"}
    run = exact(file_of(audio(), tmp_path), "cortex-m4", asked)
    assert len(run.plan.moves) > 1
    assert run.plan.arena_bytes < 1.2 * 16 * 5 * 8  # bytes of the output that stays whole


@slow
@pytest.mark.parametrize("board", ["cortex-m55", "qemu-virt-rv32v", "xcore"])
def test_views_of_channels(board, tmp_path):
    views = file_of(every_view(), tmp_path)
    whole = exact(views, board, {"strategy": "layerwise", "objective": "cost"})
    assert {whole.made.graph.ops[p].kind for p in whole.plan.views} == {OpKind.VIEW, OpKind.JOINED}
    by_rows = exact(file_of(gated_halves(), tmp_path, "halves"), board, {"objective": "ram"})
    assert by_rows.plan.views and is_streamed(by_rows)


@slow
def test_a_gated_network_in_both_passes(tmp_path):
    board = "cortex-m55"
    model = file_of(efficient_net(32, blocks=3, swish=True), tmp_path)
    least = {"objective": "ram", "simplify": "structure"}
    request = parse({"kind": "build", "model": model, "board": board, "options": {**least, "max_f": 1.0}})
    once = plan_model(request.model, request.target, request.options)
    twice = exact(model, board, {**least, "max_f": 1.6})
    assert not once.plan.second_passes and len(twice.plan.second_passes) > 1
    assert twice.plan.arena_bytes <= once.plan.arena_bytes * 0.8
    assert 1 < twice.plan.f <= 1.6
    # The weights are there once, and an image of them serves either plan.
    image = weight_image(once.graph, once.target.kernels_by_name(once.plan.kernels))
    assert twice.sources.image.data == image.data


def sliced(folder: Path) -> str:
    return file_of(split_network(2, residual=True, side=8, channels=6, seed=6), folder, "split")


@slow
def test_a_network_whose_slices_take_the_places_of_ends(tmp_path):
    model = sliced(tmp_path)
    answer = validated(model, "hifive1", {"objective": "ram"}, seed=3)
    made = plan_model(model, "hifive1", PlanOptions(objective="ram"))
    assert len(fusions(made.graph)) == 2
    assert any(region.is_streamed for region in made.plan.regions)
    assert answer["arena_bytes"] == made.plan.arena_bytes


@slow
def test_an_image_of_a_split_network_is_run_by_its_plan(tmp_path):
    request = {"model": sliced(tmp_path), "board": "host"}
    for name, data in handle({"kind": "build", **request, "options": {"objective": "ram"}})["files"].items():
        (tmp_path / name).write_bytes(data)
    elf = tmp_path / "split.elf"
    elf.chmod(0o755)
    answer = handle({"kind": "profile", **request, "elf": str(elf), "plan": str(elf.with_suffix(".plan"))})
    assert answer["exact"]
    assert answer["arena_bytes"] == from_bytes(elf.with_suffix(".plan").read_bytes()).arena_bytes


# How many instructions, and how much code.

PLAIN = 'extends = "esp8266"\n[core]\nname = "lx106"\nfamilies = ["reference"]\n'


@slow
def test_the_lx106_s_kernels_take_seven_tenths_of_the_plain_ones_instructions_at_most(tmp_path):
    needs_tool("xtensa-lx106-elf-gcc")
    needs_tool("qemu-system-xtensa")
    plain = tmp_path / "plain8266.toml"
    plain.write_text(PLAIN)

    def counted(board: str) -> Callable[[str], int]:
        answer = handle({"kind": "profile", "model": "resnet8", "board": board, "options": LAYERWISE})
        rows = answer["per_operator"]
        return lambda kind: sum(row["instructions"] for row in rows if row["operator"] == kind)

    ours, plain_ones = counted("esp8266"), counted(str(plain))
    for kind in ("CONV_2D", "ADD", "AVERAGE_POOL_2D", "FULLY_CONNECTED"):
        assert 0 < ours(kind) <= 0.7 * plain_ones(kind), kind


TFLM = 190_000  # bytes of the same network's code with TensorFlow Lite Micro and CMSIS-NN


@slow
def test_a_mobilenets_code_is_a_quarter_of_an_interpreters():
    request = {"kind": "build", "model": "mobilenetv1_025_96", "board": "cortex-m4"}
    answer = handle({**request, "options": LAYERWISE})
    code = load_board("cortex-m4").code
    sections = next(memory["sections"] for memory in answer["sizes"] if memory["memory"] == code)
    sizes = {s["name"]: s["bytes"] for s in sections if not s["name"].startswith(".nn_")}
    assert {".text", ".rodata"} <= set(sizes)
    assert 4 * sum(sizes.values()) <= TFLM


@slow
@pytest.mark.parametrize(
    ("network", "board"),
    [
        *((narrow_network, board) for board in ("cortex-m4", "qemu-virt-rv32v256", "xcore")),
        (wide_network, "cortex-m55"),
    ],
)
def test_weights_that_are_stored_in_four_bits(network, board, tmp_path):
    model = tmp_path / "narrow.tflite"
    model.write_bytes(write_model(network()))
    run = exact(str(model), board, {"objective": "flash"})
    layers = sum(isinstance(op.attrs, WeightedAttrs) for op in run.made.graph.ops)
    assert len(run.plan.narrowed) >= layers - 1  # no depthwise convolution on Helium
    channels = {one.op: run.made.graph.tensors[op.outputs[0]].nhwc[3] for one in run.plan.narrowed
                for op in [run.made.graph.ops[one.op]]}  # fmt: skip
    assert any(one.expanded < channels[one.op] for one in run.plan.narrowed)
