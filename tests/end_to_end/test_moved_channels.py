"""Networks that move channels: streamed, in little memory, and exact in every tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from boardruns import exact
from channelnets import blazeface, channel_moves
from nativebatch import TARGET

from buildtool.emit.sources import emit
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target

LAYER_BY_LAYER = 327_680  # of the detector, its paddings made


@pytest.mark.parametrize(("image", "least"), [("overwritable", 76_352), ("stream", 61_152)])
def test_a_detector_with_widened_shortcuts_streams(image, least):
    found = front(rewrite(blazeface()), load_target(TARGET), Settings(image=image))
    plan = found.plan(0)
    assert (plan.arena_bytes, plan.f) == (least, 1.0)
    assert 2 * least < LAYER_BY_LAYER


@pytest.fixture(scope="module")
def moves(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "moves.tflite"
    path.write_bytes(write_model(channel_moves()))
    return str(path)


def _exact(model, board, image):
    run = exact(model, board, {"objective": "ram", "image": image})
    assert any(region.is_streamed for region in run.made.plan.regions)


# Random ones run on the host: test_branching_networks.py.
EMULATED = [("cortex-m4", "overwritable"), ("cortex-m55", "stream")]


@pytest.mark.slow
@pytest.mark.parametrize(("board", "image"), EMULATED)
def test_moves_of_channels_are_exact_on_emulated_boards(moves, board, image):
    _exact(moves, board, image)


def test_the_header_says_in_which_order_an_input_is_wanted(moves):
    graph = rewrite(read_model(Path(moves).read_bytes()))
    target = load_target(TARGET)
    files = emit(graph, front(graph, target, Settings(image="stream")).plan(0), target, "moves").files
    header = files["moves.h"].decode()
    assert "#define MOVES_INPUT0_SHAPE {1, 19, 17, 3}" in header
    assert "#define MOVES_INPUT0_ORDER {0, 2, 3, 1}" in header
    assert "1x3x19x17" in header
    assert "#define MOVES_ROWS 19\n#define MOVES_ROW_BYTES 51\n" in header
