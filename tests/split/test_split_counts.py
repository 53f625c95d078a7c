"""Structures as records: published counts, unusual layers, branches; the order of operators in a file."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT

from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.split.backend import in_order
from buildtool.split.branches import find_in, split_steps
from buildtool.split.networks import steps_by_name
from buildtool.split.types import Choice, Fusion, Step, counts_in, parameters
from buildtool.zoo.drawn import NetBuilder

# Structures of arXiv 2002.03302 at 32x32: convolutions, fusion, 1/1000 of the original's total and MACs.
VGG16 = {
    "VGG16": (14_710_464, 0, 1000, 1000),
    "I, full": (6_936_768, 610_304, 513, 502),
    "I, slice": (4_098_240, 610_304, 320, 374),
    "II, slice": (5_572_800, 610_304, 420, 449),
    "naive, 4 ways, no fusion": (3_678_912, 0, 250, 254),
    "shared first three, then 4 ways": (3_872_448, 0, 263, 480),
}


PRINTS = """
import runpy, sys
sys.argv = ["splitting.py", "--counts"]
runpy.run_path("benchmarks/splitting.py", run_name="__main__")
assert "keras" not in sys.modules
"""


@pytest.mark.slow
def test_the_benchmark_prints_the_published_counts_without_importing_keras():
    process = subprocess.run(
        [sys.executable, "-c", PRINTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rows = {}
    for line in process.stdout.splitlines()[2:]:
        title, convolutions, fusion, _, share, _, macs = (cell.strip() for cell in line.strip("|").split("|"))
        numbers = (int(text.replace(",", "").replace("-", "0")) for text in (convolutions, fusion))
        rows[title] = (*numbers, *(round(1000 * float(text)) for text in (share, macs)))
    assert {title: rows[title] for title in VGG16} == VGG16
    assert rows["ResNet18"][0] == 11_159_232
    # Every branch has a quarter of all channels, but all channels of the input image.
    assert rows["ResNet18, naive, 4 ways"][0] == (11_159_232 - 27 * 64) // 4 + 27 * 64


def test_an_image_that_does_not_fit_the_poolings_is_refused():
    with pytest.raises(UsageError, match="input size 40 does not fit"):
        steps_by_name("vgg16", size=40)


# ---- choices -------------------------------------------------------------------------------------


def test_a_choice_has_a_key_and_one_that_means_nothing_is_refused():
    assert Choice((8, 2, 2, 4, 4)).key() == "8-2-2-4-4,slice"
    assert Choice((4, 4), "full", Fusion.SHARED, 3).key() == "4-4,full,shared3"
    assert Choice((1, 4, 4), fusion=Fusion.NAIVE).key() == "1-4-4,slice,naive"
    with pytest.raises(UsageError, match="not whole numbers above 0"):
        Choice((2, 0))
    with pytest.raises(UsageError, match="equal, not 2-4"):
        Choice((2, 4), fusion=Fusion.NAIVE)
    with pytest.raises(UsageError, match="belong together"):
        Choice((4, 4), shared=2)


# ---- blocks and branches -------------------------------------------------------------------------


def test_blocks_end_at_poolings_and_begin_at_strides():
    blocks = find_in(steps_by_name("vgg16"))
    assert [block.layers[-1] for block in blocks] == [f"block{i}_pool" for i in range(1, 6)]
    assert [block.channels for block in blocks] == [64, 128, 256, 512, 512]
    blocks = find_in(steps_by_name("resnet18"))
    assert [block.layers[0] for block in blocks] == ["stem", *(f"stage{i}_1_conv1" for i in (2, 3, 4))]
    assert blocks[-1].layers[-1] == "average"
    assert all(block.largest == block.channels for block in blocks)


def test_a_factor_beyond_the_channels_is_refused_with_those_that_fit():
    steps = steps_by_name("vgg16", 0.0625)
    with pytest.raises(UsageError, match=r"block1 cannot be split into 8 .* has 4 channels") as info:
        split_steps(steps, find_in(steps), Choice((8, 1, 1, 1, 1)))
    assert "1, 2, 3, 4" in info.value.hint
    with pytest.raises(UsageError, match="2 splitting factors"):
        split_steps(steps, find_in(steps), Choice((2, 2)))


def grouped(groups):
    shape = (8, 8, 12)
    return [
        Step("image", "InputLayer", (), (8, 8, 3)),
        Step("first", "Conv2D", ("image",), shape, kernel=(3, 3), strides=(1, 1)),
        Step("groups", "Conv2D", ("first",), shape, kernel=(3, 3), strides=(1, 1), groups=groups),
        Step("pool", "MaxPooling2D", ("groups",), (4, 4, 12), kernel=(2, 2), strides=(2, 2)),
        Step("flat", "Flatten", ("pool",), (192,)),
        Step("classes", "Dense", ("flat",), (10,)),
    ]


def test_a_grouped_convolution_falls_into_whole_groups():
    steps = grouped(4)
    (block,) = find_in(steps)
    assert [factor for factor in range(1, 13) if block.allows(factor)] == [1, 2, 4]
    split = split_steps(steps, [block], Choice((2,)))
    assert [step.groups for step in split if step.name.startswith("groups")] == [2, 2]
    # Groups are independent, so splitting between them loses nothing.
    whole, parts = counts_in(steps), counts_in(split)
    assert parts.convolutions == whole.convolutions
    with pytest.raises(UsageError, match="grouped convolutions have 4 groups"):
        split_steps(steps, [block], Choice((3,)))


def test_a_network_that_cannot_be_split_says_which_layer_is_why():
    with pytest.raises(UnsupportedError, match="no convolution that can be split"):
        find_in([Step("x", "InputLayer", (), (8,)), Step("d", "Dense", ("x",), (4,))])
    steps = grouped(1)
    why = "it normalises all channels"
    steps[2] = Step("norm", "LayerNormalization", ("first",), (8, 8, 12), refused=why)
    steps[3] = Step("pool", "MaxPooling2D", ("norm",), (4, 4, 12), kernel=(2, 2), strides=(2, 2))
    with pytest.raises(UnsupportedError, match="layer norm: it cannot be split: it normalises all channels"):
        find_in(steps)


# ---- properties ----------------------------------------------------------------------------------


@st.composite
def chains(draw):
    """The steps of a chain of convolutions, poolings and residual additions, and its blocks' factors."""
    steps = [Step("image", "InputLayer", (), (32, 32, 3))]
    factors = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    for block, factor in enumerate(factors):
        even = draw(st.booleans())
        wide = draw(st.integers(2, 4)) * factor if even else draw(st.integers(max(factor, 2), 20))
        for index in range(draw(st.integers(1, 3))):
            rows, name, last = steps[-1].shape[0], f"b{block}c{index}", steps[-1].name
            shape = (rows, rows, wide)
            size = draw(st.sampled_from((1, 3)))
            steps.append(Step(name, "Conv2D", (last,), shape, kernel=(size, size), strides=(1, 1)))
            if index and draw(st.booleans()):
                steps.append(Step(f"{name}_add", "Add", (name, last), shape))
        half = (steps[-1].shape[0] // 2,) * 2
        pool = Step(f"b{block}p", "MaxPooling2D", (steps[-1].name,), (*half, wide), (2, 2), (2, 2))
        steps.append(pool)
    count = half[0] * half[1] * wide
    steps += [Step("flat", "Flatten", (pool.name,), (count,)), Step("out", "Dense", ("flat",), (3,))]
    return tuple(steps), tuple(factors)


@given(chains(), st.sampled_from(("full", "slice")))
def test_branches_have_every_channel_once_and_their_share_of_the_weights(drawn, first):
    steps, factors = drawn
    blocks = find_in(steps)
    split = split_steps(steps, blocks, Choice(factors, first))
    by_name: dict[str, Step] = {}
    for step in split:
        assert step.name not in by_name and by_name.keys() >= set(step.inputs)
        by_name[step.name] = step
        if step.kind == "Concatenate":
            assert step.channels == sum(by_name[name].channels for name in step.inputs)
    assert split[-1].shape == steps[-1].shape
    whole, parts = parameters(steps), parameters(split)
    for block, factor in zip(blocks, factors, strict=True):
        if factor == 1:
            continue
        convolutions = [step for step in steps if step.name in block.layers and step.is_mixing]
        for index, step in enumerate(convolutions):
            mine = [by_name[f"{step.name}_k{factor}b{branch}"] for branch in range(factor)]
            assert sum((one.part.writes for one in mine), ()) == tuple(range(step.channels))
            before = next(one.channels for one in steps if one.name == step.inputs[0])
            reads_all = index == 0 and (block.index == 0 or first == "full" or before < factor)
            if reads_all or step.channels % factor == 0 == before % factor:
                share = whole[step.name] // (1 if reads_all else factor)
                assert sum(parts[one.name] for one in mine) == share
        assert parts[f"{block.name}_k{factor}_fusion"] == block.channels**2


# ---- the order of operators in a file ----------------------------------------------------------------


def interleaved():
    """Two joined branches of two convolutions; the first convolutions of both come first."""
    net = NetBuilder(3)
    image = net.input((1, 6, 6, 3))
    first = [net.conv(image, channels, kernel=(3, 3)) for channels in (4, 5)]
    second = [net.conv(one, channels) for one, channels in zip(first, (6, 7), strict=True)]
    return net.graph([net.concat(second)])


def convolutions(data):
    """Output channels of the file's convolutions, in its order."""
    graph = read_model(data)
    return [graph.tensors[op.outputs[0]].shape[3] for op in graph.ops if op.kind is OpKind.CONV_2D]


def test_a_branch_ends_before_the_next_one_begins_and_results_are_the_same():
    before = write_model(interleaved())
    after = in_order(before)
    assert convolutions(before) == [4, 5, 6, 7]
    assert convolutions(after) == [4, 6, 5, 7]
    assert len(after) == len(before)
    assert in_order(after) == after
    image = np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)
    first, second = (execute(graph, [image])[graph.outputs[0]] for graph in map(read_model, (before, after)))
    assert np.array_equal(first, second)
    assert first.std() > 0
