"""Keys of entries: what changes them, and what does not. Every plan from disk is checked before use."""

import dataclasses
import shutil

import msgpack
import pytest

from buildtool.api import handle_cached
from buildtool.base.errors import PlanError
from buildtool.base.session import Session
from buildtool.base.store import disk
from buildtool.base.store.cache import Cache
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.codec import from_bytes, to_bytes
from buildtool.zoo.drawn import NetBuilder, quant

CODE = "the code's digest"


def network(seed=1, channels=8):
    net = NetBuilder(seed)
    x = net.input((1, 12, 12, 3), q=quant(0.05, -3))
    x = net.conv(x, channels, kernel=(3, 3), stride=(2, 2), same=True)
    x = net.conv(x, 6, kernel=(1, 1), same=True)
    return net.graph([net.softmax(net.flatten(x))])


def rename(graph):
    tensors = tuple(dataclasses.replace(t, name=f"other{i}") for i, t in enumerate(graph.tensors))
    return dataclasses.replace(graph, tensors=tensors)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    graph = network()
    others = {"renamed": rename(graph), "retrained": network(seed=2), "wider": network(channels=9)}
    for name, graph_of in {"net": graph, **others}.items():
        (folder / f"{name}.tflite").write_bytes(write_model(graph_of))
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "net.tflite", folder / "elsewhere" / "moved.tflite")
    return folder


def ask(folder, path, kind="plan", use="on", code=CODE, board="cortex-m4", **options):
    """Returns the answer of a new session over the cache in `folder`, and hits and misses by namespace."""
    cache = Cache(folder, code)
    flush, counts = cache.flush, {}
    cache.flush = lambda: (counts.update(cache.counts()), flush())
    request = {"kind": kind, "model": str(path), "board": board}
    answer = handle_cached(request | ({"options": options} if options else {}), Session(keeper=cache), use)
    return msgpack.packb(answer), counts


def plan_counts(counts):
    return counts["plans"]["hits"], counts["plans"]["misses"]


def entries(folder, level="plans"):
    return sorted(path for path in (folder / level).rglob("*") if path.is_file())


def test_names_weights_and_places_of_files_change_no_plans_key(models, tmp_path):
    cold, counts = ask(tmp_path / "c", models / "net.tflite")
    assert plan_counts(counts) == (0, 1)
    again, counts = ask(tmp_path / "c", models / "net.tflite")
    assert plan_counts(counts) == (1, 0) and again == cold
    for name in ("renamed", "retrained", "elsewhere/moved"):
        path = models / f"{name}.tflite"
        warm, counts = ask(tmp_path / "c", path)
        assert plan_counts(counts) == (1, 0), name
        assert warm == ask(tmp_path / "other", path, use="off")[0], name


def test_every_thing_that_a_plan_depends_on_changes_its_key(models, tmp_path):
    ask(tmp_path, models / "net.tflite")
    total = len(entries(tmp_path))
    others = {"code": "other code", "board": "cortex-m55", "strategy": "layerwise", "image": "resident"}
    others |= {"in_place": "none", "objective": "ram", "ram": 100_000, "max_f": 1.5, "max_cost": 1e12}
    others |= {"max_ms": 1e9, "hand_off": 2, "outputs": "t6"}
    for model, changed in [("wider", {}), *(("net", {name: value}) for name, value in others.items())]:
        _, counts = ask(tmp_path, models / f"{model}.tflite", **changed)
        hits, misses = plan_counts(counts)
        assert hits == 0 < misses, changed  # several plans where the search places points of a front
        total += misses
        assert len(entries(tmp_path)) == total, changed


def test_every_option_has_a_part_in_a_plans_key(models):
    from buildtool.api.requests import parse
    from buildtool.firmware.planned import prepare
    from buildtool.plan.choose import cache
    from buildtool.plan.models import load_network
    from buildtool.target import choice as targets

    request = parse({"kind": "plan", "model": str(models / "net.tflite"), "board": "cortex-m4"})
    session = Session()
    network, target = load_network(request.model, session), targets.load_target(request.target)
    parts = cache.parts(prepare(network, target, PlanOptions(), session))
    assert {field.name for field in dataclasses.fields(PlanOptions)} < parts.keys()
    assert {"schema", "topology", "target", "kernels", "most_ram"} < parts.keys()


def test_that_it_does_not_fit_is_kept_with_the_same_words(models, tmp_path):
    words = []
    for use in ("off", "on", "on"):
        with pytest.raises(PlanError) as caught:
            ask(tmp_path, models / "net.tflite", use=use, ram=64)
        words.append(caught.value.message())
    assert len(set(words)) == 1
    assert len(entries(tmp_path, "refusals")) == 1
    with pytest.raises(PlanError) as caught:
        ask(tmp_path, models / "renamed.tflite", ram=64)
    with pytest.raises(PlanError) as expected:
        ask(tmp_path, models / "renamed.tflite", use="off", ram=64)
    assert caught.value.message() == expected.value.message()


def shift_offsets(payload, by):
    index, factor, ended, plan_bytes = msgpack.unpackb(payload)
    plan = from_bytes(plan_bytes)
    for number, buffer in enumerate(plan.buffers):
        changed = list(plan.buffers)
        changed[number] = dataclasses.replace(buffer, offset=buffer.offset + by)
        top = max(b.offset + b.size for b in changed)
        arena = max(plan.arena_bytes, -(-top // plan.alignment) * plan.alignment)
        moved = dataclasses.replace(plan, buffers=tuple(changed), arena_bytes=arena)
        yield msgpack.packb([index, factor, ended, to_bytes(moved)])


def test_a_plan_whose_offset_is_shifted_by_one_is_rejected_and_planned_anew(models, tmp_path):
    cold, _ = ask(tmp_path, models / "net.tflite")
    (path,) = entries(tmp_path)
    key = path.parent.name + path.name
    good = path.read_bytes()
    payload = disk.unpack(good, "plans", key)
    bad = list(shift_offsets(payload, 1))
    assert len(bad) >= 3
    for number, data in enumerate(bad):
        path.write_bytes(disk.pack("plans", key, data))
        warm, counts = ask(tmp_path, models / "net.tflite")
        assert warm == cold and plan_counts(counts) == (0, 1), number
        assert path.read_bytes() == good
        assert (tmp_path / "aside" / f"plans-{key}").exists()
    path.write_bytes(disk.pack("plans", key, payload))
    assert plan_counts(ask(tmp_path, models / "net.tflite")[1]) == (1, 0)


STRANGE = [None, [], [0, 1.0], [99, 1.0, b""], [True, 1.0, b""], [0, float("nan"), b""], [0, "1", b""]]
STRANGE += [[0, 0.5, b""], [0, 1.0, "text"], [0, 1.0, b"noise"], {"index": 0}]


@pytest.mark.parametrize("content", STRANGE)
def test_an_entry_of_another_form_is_planned_anew(models, tmp_path, content):
    cold, _ = ask(tmp_path, models / "net.tflite")
    (path,) = entries(tmp_path)
    key = path.parent.name + path.name
    path.write_bytes(disk.pack("plans", key, msgpack.packb(content)))
    assert ask(tmp_path, models / "net.tflite")[0] == cold
