"""Calls from inside an invoke are refused, a row source can end an invoke, and the next invoke is exact.

One program with networks of every form runs under sanitizers: with inputs in memory or row by row, in one
step or streamed, with state, with loaded weights, in two memories. Every callback of every network tries all
calls that would change the network's memory or sources.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from loaded import SLOW_WEIGHTS, load_target, twin
from nativebatch import FLAGS, Job, build, execute
from statenets import ring

from buildtool.emit.sources import emit
from buildtool.graph import reference
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph, OpKind
from buildtool.options.values import PlanOptions
from buildtool.plan.check.check import check
from buildtool.plan.choose.choose import make_plan
from buildtool.target.choice import with_arena_in
from buildtool.zoo.drawn import NetBuilder


def chain(seed: int) -> Graph:
    """A network of convolutions, for an input image of twelve rows."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 12, 10, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(net.conv(x, 12, kernel=(3, 3), same=True), 6)
    return net.graph([net.dense(net.flatten(x), 5)])


def remembering(seed: int) -> Graph:
    """The same network, with rows of the previous invoke in a state."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 12, 10, 3)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(ring(net, x, 10), 4, kernel=(3, 3), stride=(2, 2))
    return net.graph([net.dense(net.flatten(x), 5)])


def pair(seed: int) -> Graph:
    """A network with two inputs and two outputs."""
    net = NetBuilder(seed)
    x, y = net.input((1, 6, 5, 4)), net.input((1, 6, 5, 4))
    z = net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(3, 3), same=True), y)
    return net.graph([net.dense(net.flatten(z), 7), net.pool(OpKind.MAX_POOL_2D, z, (2, 2), (2, 2))])


def made(name: str, graph: Graph, board: str, **options: object) -> Job:
    """Returns a network as a job of a native program, without inputs."""
    graph, target = rewrite(graph), load_target(board)
    if board.endswith("twin.toml"):
        target = dataclasses.replace(target, board=with_arena_in(target.board, "ram,fast"))
    plan = make_plan(graph, target, PlanOptions(**options))
    check(plan, graph, target)
    return Job(b"", graph, graph, plan, emit(graph, plan, target, name), [])


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    folder = tmp_path_factory.mktemp("boards")
    (folder / "slow.toml").write_text(SLOW_WEIGHTS)
    (folder / "twin.toml").write_text(twin(1400, 2048))
    rows = {"image": "stream", "objective": "ram"}
    all_jobs = [
        made("given", pair(1), "host"),
        made("rows", chain(2), "host", **rows),
        made("whole", chain(3), "host", image="stream"),
        made("state", remembering(4), "host", **rows),
        made("slow", chain(5), str(folder / "slow.toml"), **rows),
        made("late", chain(6), str(folder / "slow.toml"), image="stream"),
        made("twin", chain(7), str(folder / "twin.toml"), image="stream"),
    ]
    plans = {job.sources.net: job.plan for job in all_jobs}
    assert any(region.is_streamed for region in plans["rows"].regions)
    assert not plans["whole"].regions[0].is_streamed
    assert plans["state"].states and plans["slow"].loads and plans["late"].loads
    assert len(plans["twin"].arenas) == 2
    return all_jobs


def networks(jobs: list[Job]) -> str:
    """Returns C for the networks' memory, and for a table of the networks."""
    parts, table = [], []
    for job in jobs:
        net, macro = job.sources.net, job.sources.net.upper()
        second = f"{net}_second, sizeof {net}_second, " if len(job.plan.arenas) > 1 else ""
        parts.append(f'#include "{net}.h"\n{macro}_DEFINE_ARENA({net}_arena);\n')
        parts.append(f"{macro}_DEFINE_SECOND_ARENA({net}_second);\n" if second else "")
        parts.append(
            f"static nn_status init_{net}(int8_t *arena, size_t bytes, const void *image) {{\n"
            f"    return {net}_init(arena, bytes, {second}image);\n}}\n"
        )
        by_rows = job.plan.image == "stream"
        has = {"reset": job.plan.states, "set_row_source": by_rows, "set_loader": job.plan.loads}
        functions = [f"{net}_{name}" if has_function else "NULL" for name, has_function in has.items()]
        sizes = [
            "(const uint32_t[]){" + "".join(f"{macro}_{word}{i}_BYTES, " for i in range(len(tensors))) + "0}"
            for word, tensors in (("INPUT", job.graph.inputs), ("OUTPUT", job.graph.outputs))
        ]
        fields = [f'"{net}"', f"init_{net}", f"{net}_invoke", *functions, f"{net}_set_yield"]
        fields += ["NULL" if by_rows else f"{net}_input", f"{net}_output"]
        fields += [f"{net}_output_quantization", f"{net}_weights"]
        fields += [f"{macro}_WEIGHTS_BYTES", f"{net}_arena", f"{macro}_ARENA_BYTES", *sizes]
        table.append("{" + ", ".join([*fields, f"{macro}_ROW_BYTES" if by_rows else "0"]) + "},\n")
    return "".join([*parts, "static const network networks[] = {\n", *table, "{0}};\n"])


@pytest.mark.slow
def test_a_network_at_work_is_guarded_and_can_be_ended(jobs: list[Job], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "networks.inc").write_text(networks(jobs))
    main = Path(__file__).with_name("guards.c").read_text()
    lines = execute(build(jobs, tmp_path, FLAGS, main)).splitlines()
    outputs = {name: [int(n) for n in values] for name, *values in map(str.split, lines)}
    assert list(outputs) == [job.sources.net for job in jobs]
    for job in jobs:
        if not job.graph.states:
            tensors = [job.graph.tensors[t] for t in job.graph.inputs]
            images = [
                (np.arange(t.size) * 7 + 3 + 22 * i).astype(np.int8).reshape(t.shape)
                for i, t in enumerate(tensors)
            ]
            expected = reference.execute(job.graph, images)[job.graph.outputs[0]]
            assert outputs[job.sources.net] == expected.ravel().tolist(), job.sources.net
