"""Weights stored in four bits: the same results, in as few bytes as the format promises."""

from ctypes import c_int32, c_void_p
from dataclasses import replace

import numpy as np
import pytest
from ckernels import library
from drawnnets import branching_networks, gated_networks, small_networks
from hypothesis import given
from hypothesis import strategies as st
from narrownets import marked, narrow_network, with_narrow_weights
from nativebatch import BATCHES, Job, assert_exact, front_point, prepare

from buildtool.emit.fourbits import PIECE, encode
from buildtool.graph.types import Graph
from buildtool.plan.search.front import Settings


@pytest.mark.slow
@given(
    sixteens=st.integers(1, 300),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    offset=st.sampled_from([(0, 0), (128, 0), (128, 128)]),
    seed=st.integers(0, 1 << 30),
)
def test_what_is_encoded_is_expanded_to_the_same_bytes(sixteens, share, offset, seed):
    rng = np.random.default_rng(seed)
    block = rng.integers(-8, 8, 16 * sixteens).astype(np.uint8)
    block += np.resize(np.array(offset, np.uint8), len(block))
    is_wide = rng.random(len(block)) < share / PIECE
    block[is_wide] = rng.integers(0, 256, is_wide.sum())
    stored = np.frombuffer(encode(block.tobytes()), np.uint8)
    out = np.full(len(block) + 16, 0xA5, np.uint8)
    expand = library().nn_expand_s4
    expand.argtypes, expand.restype = [c_void_p, c_void_p, c_int32], c_void_p
    assert expand(stored.ctypes.data, out.ctypes.data, len(block)) == stored.ctypes.data + len(stored)
    np.testing.assert_array_equal(out[: len(block)], block)
    assert (out[len(block) :] == 0xA5).all()
    if not is_wide.any():
        pieces = len(block) // PIECE
        assert len(stored) == 8 + -(-pieces // 64) * 8 + PIECE // 2 * pieces + len(block) % PIECE


def job(name: str, graph: Graph, seed: int, image: str, part: float) -> Job:
    """Returns the network with all narrow weights stored in four bits, at a point of its front."""
    rng, point = np.random.default_rng(seed), front_point(Settings(image=image), part)
    marks = []

    def change(rewritten, target):
        changed, narrowed = marked(rewritten, target, rng)
        marks.append(narrowed)
        return changed

    def planner(changed, target):
        return replace(point(changed, target), narrowed=marks[0])

    return prepare(with_narrow_weights(graph, rng), name, seed=seed, planner=planner, change=change)


networks = st.one_of(small_networks(), branching_networks(), gated_networks())
drawn = st.tuples(
    networks,
    st.integers(0, 1 << 30),
    st.sampled_from(["overwritable", "resident"]),
    st.sampled_from([0.0, 0.5, 1.0]),
)


@pytest.mark.slow
@BATCHES
@given(st.lists(drawn, min_size=24, max_size=24))
def test_drawn_networks_are_equal_in_every_tensor(tmp_path_factory, drawn_ones):
    jobs = [job(f"n{i}", *of) for i, of in enumerate(drawn_ones)]
    jobs += [job(f"l{i}", narrow_network(i), i, "overwritable", i / 2) for i in range(3)]
    assert sum(len(one.plan.narrowed) for one in jobs) > len(jobs)
    assert any(  # a slice of fewer channels at the end
        of.expanded and one.graph.tensors[op.outputs[0]].nhwc[3] % of.expanded
        for one in jobs
        for of in one.plan.narrowed
        for op in [one.graph.ops[of.op]]
    )
    assert_exact(jobs, tmp_path_factory.mktemp("batch"))
