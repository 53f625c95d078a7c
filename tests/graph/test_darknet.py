"""Darknet's .cfg files: the sizes of layers follow Darknet's rules; malformed files are refused."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.darknet import read_cfg
from buildtool.graph.flow import fuse

NET = "[net]\nheight=32\nwidth=48\nchannels=3\n"


def read(text, **options):
    return read_cfg((NET + text).encode(), **options)


def sizes(flow):
    """Returns the number of floats in every activation, the input first."""
    return [flow.values[v].size // 4 for v in flow.activations()]


def weights(flow):
    return [flow.values[v].size // 4 for v in flow.weights()]


def test_a_convolution_its_normalisation_and_its_activation_are_three_operators_or_one():
    flow = read("[convolutional]\nfilters=8\nsize=3\nstride=2\npad=1\nbatch_normalize=1\nactivation=leaky\n")
    assert [op.kind for op in flow.ops] == ["convolutional", "batchnorm", "activation"]
    assert sizes(flow) == [32 * 48 * 3] + 3 * [16 * 24 * 8]
    assert weights(flow) == [8 * 3 * 9, 4 * 8]
    joined = fuse(flow)
    assert [op.kind for op in joined.ops] == ["convolutional"]
    assert sizes(joined) == [32 * 48 * 3, 16 * 24 * 8]
    assert weights(joined) == weights(flow)


@pytest.mark.parametrize(
    ("layer", "size", "count"),
    [
        ("[convolutional]\nfilters=4\nsize=5\nactivation=linear\n", 28 * 44 * 4, [4 * 3 * 25 + 4]),
        ("[convolutional]\nfilters=6\ngroups=3\nsize=3\npadding=2\nactivation=linear", 34 * 50 * 6, [54 + 6]),
        ("[maxpool]\nsize=2\nstride=2\n", 16 * 24 * 3, []),
        ("[maxpool]\nsize=2\nstride=1\n", 32 * 48 * 3, []),
        ("[maxpool]\nsize=3\nstride=2\n", 16 * 24 * 3, []),
        ("[maxpool]\nsize=2\nstride=2\npadding=0\n", 16 * 24 * 3, []),
        ("[avgpool]\n", 3, []),
        ("[connected]\noutput=10\nactivation=linear\n", 10, [32 * 48 * 3 * 10 + 10]),
        ("[local]\nfilters=2\nsize=3\npad=1\nactivation=linear\n", 32 * 48 * 2, [32 * 48 * 2 * 28]),
        ("[reorg]\nstride=2\n", 32 * 48 * 3, []),
        ("[upsample]\nstride=2\n", 64 * 96 * 3, []),
    ],
)
def test_layers_have_darknets_sizes(layer, size, count):
    flow = read(layer)
    assert sizes(flow)[-1] == size
    assert weights(flow) == count


def test_routes_join_layers_or_go_back_to_one():
    conv = "[convolutional]\nfilters={}\nsize=1\nactivation=linear\n"
    text = conv.format(4) + conv.format(6) + "[route]\nlayers=-1,0\n[route]\nlayers=0\n" + conv.format(2)
    flow = read(text)
    assert sizes(flow) == [32 * 48 * n for n in (3, 4, 6, 10, 2)]
    last = flow.ops[-1]
    assert flow.values[last.reads[0]].size == 32 * 48 * 4 * 4
    assert len(flow.outputs) == 2


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("", ModelError, "no layer"),
        ("[lstm]\n", UnsupportedError, r"line 5 \[lstm\]"),
        ("[convolutional]\nfilters=x\n", ModelError, "filters=x"),
        ("[convolutional]\nfilters=-1\n", ModelError, "filters=-1"),
        ("[convolutional]\nfilters=99999999999999999999\n", ModelError, "filters=9"),
        ("[convolutional]\nfilters=8\nsize=99\n", ModelError, "too small"),
        ("[convolutional]\nfilters=8\ngroups=2\n", ModelError, "2 groups of 3 channels"),
        ("[maxpool]\nstride=0\n", ModelError, "stride=0"),
        ("[route]\nlayers=7\n", ModelError, "refers to layer 7"),
        ("[route]\nlayers=\n", ModelError, "expected whole numbers"),
        ("[reorg]\nstride=5\n", ModelError, "stride of 5"),
        ("[maxpool]\nnonsense\n", ModelError, "'nonsense' is not an option"),
    ],
)
def test_errors_name_the_line(text, error, says):
    with pytest.raises(error, match=says):
        read(text, path="a.cfg")


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"[convolutional]\n", b"x=1\n", b"[net]\nwidth=4\n"])
def test_other_files_are_refused(data):
    with pytest.raises(ModelError, match=r"a\.cfg"):
        read_cfg(data, path="a.cfg")


LINES = """[net] [convolutional] [route] [maxpool] layers=-1,-2 size=3 filters=9 stride=2 [shortcut] from=-2
    groups=2 [upsample] height=64 width=64 [local] pad=1""".split()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(LINES) | st.text(max_size=8), max_size=40))
def test_any_text_gives_a_network_or_an_error(lines):
    try:
        flow = read("\n".join(lines))
    except BuildtoolError:
        return
    assert flow.ops and all(flow.values[v].size > 0 for v in flow.activations())


def test_large_files_end_soon():
    start = time.process_time()
    with pytest.raises(ModelError, match="more than 4096 sections"):
        read("[maxpool]\n" * 60_000)
    with pytest.raises(ModelError, match="too small"):
        read("[maxpool]\nsize=2\nstride=2\npadding=0\n" * 4000)
    with pytest.raises(ModelError, match=r"more than [0-9]+ bytes"):
        read("[upsample]\nstride=2\n" * 4000)
    flow = read("[maxpool]\nsize=2\nstride=1\n" * 4000)
    assert len(flow.ops) == 4000
    assert time.process_time() - start < 20
