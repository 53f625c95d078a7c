"""The short names of layers: what tells them apart, and no more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.layers import short_names

WORDS = st.lists(st.sampled_from(("a", "b", "relu", "conv", "net")), min_size=1, max_size=4)


def test_what_tells_no_layers_apart_is_left_out():
    names = ["net/conv1/Relu6;net/bn", "net/block_1/add/add", "net/block_2/add/add", "net/block_2/mul/mul"]
    assert short_names(names) == ["conv1", "block_1", "block_2/add", "block_2/mul"]
    names = [f"m/{block}/conv/{layer}" for block in range(3) for layer in ("expand", "depth", "project")]
    assert short_names(names) == [name.removeprefix("m/").replace("/conv", "") for name in names]


def test_a_name_that_starts_with_a_slash_is_not_empty():
    assert short_names(["/pool/GlobalAveragePool_output_0"]) == ["pool"]


def test_joined_names_keep_the_rows_of_a_moving_window():
    names = ["net/a/Relu;net/x [0-1]", "net/a/Relu;x [2-3]", "net/b/Relu;y [4] (kept next)", "net/b/Relu;z"]
    assert short_names(names) == ["a/Relu [0-1]", "a/Relu [2-3]", "b/Relu [4] (kept next)", "b/Relu"]


@given(st.lists(WORDS.map("/".join), unique=True, max_size=8))
@settings(derandomize=True, deadline=None)
def test_no_two_layers_get_one_name(names):
    short = short_names(names)
    assert len(set(short)) == len(names)
    assert all(len(s) <= len(name) for s, name in zip(short, names, strict=True))
