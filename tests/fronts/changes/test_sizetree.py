"""The parts of firmware images as trees: sums, differences, limits, and the text that shows them."""

import json

import pytest
from needs import needs_tool

from buildtool.base.errors import UsageError
from buildtool.fronts.changes import compare, figures, sizetree
from buildtool.fronts.texts.builds import demangle, tree


def part(path, size, kind="code"):
    """Returns a part by its path memory/owner/library/file/symbol; an empty name is not known."""
    names = dict(zip(sizetree.LEVELS, path.split("/"), strict=True))
    return {**names, "section": ".x", "kind": kind, "bytes": size}


OLD = [
    part("flash/network//net.o/net_invoke", 100),
    part("flash/kernels/libnn.a/conv.o/nn_conv", 500),
    part("flash/kernels/libnn.a/conv.o/turn", 50),
    part("flash/application/libc.a/memcpy.o/memcpy", 30),
    part("ram/network///net_state", 200, "variables"),
    part("flash/network///net_state", 200, "initial values"),
]
NEW = [
    part("flash/network//net.o/net_invoke", 140),
    part("flash/kernels/libnn.a/conv.o/nn_conv", 450),
    part("flash/kernels/libnn.a/conv.o/turn", 50),
    part("flash/kernels/libnn.a/pool.o/nn_pool", 60),
    part("ram/network///net_state", 300, "variables"),
    part("flash/network///net_state", 300, "initial values"),
]


def names(nodes, depth=9):
    return [(indent, node.name, node.before, node.after) for indent, node in sizetree.walk(nodes, depth)]


def test_only_what_differs_is_left_what_changed_most_first():
    assert names(sizetree.changed_nodes(sizetree.tree(OLD, NEW))) == [
        (0, "flash", 880, 1000),
        (1, "network", 300, 440),
        (2, "net_state", 200, 300),
        (2, "net.o", 100, 140),
        (3, "net_invoke", 100, 140),
        (1, "application", 30, None),
        (2, "libc.a", 30, None),
        (3, "memcpy.o", 30, None),
        (4, "memcpy", 30, None),
        (1, "kernels", 550, 560),
        (2, "libnn.a", 550, 560),
        (3, "pool.o", None, 60),
        (4, "nn_pool", None, 60),
        (3, "conv.o", 550, 500),
        (4, "nn_conv", 500, 450),
        (0, "ram", 200, 300),
        (1, "network", 200, 300),
        (2, "net_state", 200, 300),
    ]
    assert sizetree.changed_nodes(sizetree.tree(OLD, OLD)) == ()


@pytest.fixture
def found(tmp_path):
    files = []
    for name, parts in (("old", OLD), ("new", NEW)):
        (tmp_path / name).write_text(json.dumps({"board": "b", "parts": parts}))
        files.append(figures.read(str(tmp_path / name)))
    return compare.changes(*files)


def test_what_an_image_is_full_of_can_be_limited(found):
    totals = {change.name: (change.before, change.after) for change in found.totals}
    assert totals == {
        "code": (680, 700),
        "constants": (0, 0),
        "variables": (200, 300),
        "flash.network": (300, 440),
        "flash.kernels": (550, 560),
        "flash.application": (30, 0),
    }
    limits = [
        compare.parse_limit(text) for text in ("code+19", "code+20", "flash.kernels+1%", "variables+50%")
    ]
    assert compare.exceeded_limits(limits, found.totals) == ["code+19", "flash.kernels+1%"]
    with pytest.raises(UsageError):
        compare.parse_limit("flash.nobody+1")


@pytest.mark.parametrize("wrong", [{"bytes": "9"}, {"bytes": 1.5}, {"bytes": 10**30}, {"bytes": None}])
def test_parts_that_are_none_are_refused(tmp_path, wrong):
    (tmp_path / "x.json").write_text(json.dumps({"parts": [{**OLD[0], **wrong}]}))
    with pytest.raises(UsageError):
        figures.read(str(tmp_path / "x.json"))


def test_cpp_names_are_shown_as_their_authors_wrote_them():
    mangled = "_ZN3app5BoxedIiE5twiceEi"
    needs_tool("c++filt")
    names = demangle([mangled, "nn_conv", "_Znot one", "_Z\n"])
    assert names[mangled] == "app::Boxed<int>::twice(int)"
    assert "nn_conv" not in names
    text = tree([part(f"flash/application//a.o/{mangled}", 8)], "map", 5)
    assert "      app::Boxed<int>::twice(int)" in text and mangled not in text
