import dataclasses

import numpy as np
import pytest
from mistakes import mistakes

from buildtool.base.errors import TargetError, UnsupportedError
from buildtool.graph.types import (
    Attrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    FullyConnectedAttrs,
    Graph,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    Tensor,
)
from buildtool.target.catalogue import features, scratch_bytes, select
from buildtool.target.costs import Pricer, once
from buildtool.target.family import load_family, resolve_packings
from buildtool.target.registry import load_board
from buildtool.target.types import Contract, Costs, KernelVariant, Target, Windows
from buildtool.target.variables import VARIABLES
from buildtool.zoo.drawn import NetBuilder
from buildtool.zoo.drawn_state import lstm, svdf

ENTRY = """
[[kernel]]
op = ["ADD", "SUB"]
name = "add_fast"
symbol = "nn_add_fast"
call = "constants, in1, in2, out, window"
sources = ["fast/a.c", "fast/b.c"]
packing = "add"
when = "cin % 4 == 0"
scratch = "2 * cin"
overlap = "pixel"
cost = "100 + 3 * outputs"
"""


def load(tmp_path, text):
    (tmp_path / "catalogue.toml").write_text(text)
    return load_family(tmp_path)


def one_op(kind, x, weights, y, attrs):
    """Returns a graph of one operator with these shapes, and the operator."""
    tensors = [Tensor("x", x, DType.INT8), Tensor("y", y, DType.INT8)]
    inputs = [0]
    if weights is not None:
        tensors.append(Tensor("w", weights, DType.INT8, data=np.zeros(weights, np.int8)))
        inputs += [2, -1]
    op = Op(kind, tuple(inputs), (1,), attrs, 0)
    return Graph("g", tuple(tensors), (op,), (0,), (1,)), op


def target(*kernels):
    return Target(load_board("host"), kernels)


def test_every_field_arrives_once_for_each_operator_kind(tmp_path):
    add, sub = load(tmp_path, ENTRY).kernels
    assert (add.op, sub.op) == ("ADD", "SUB")
    assert dataclasses.replace(sub, op="ADD") == add
    assert (add.name, add.symbol, add.packing) == ("add_fast", "nn_add_fast", "add")
    assert add.sources == ("fast/a.c", "fast/b.c")
    assert (add.when, add.scratch, add.cost) == ("cin % 4 == 0", "2 * cin", "100 + 3 * outputs")
    assert add.overlap is Contract.PIXEL
    assert add.call == ("constants", "in1", "in2", "out", "window")
    assert add.windows is Windows.ANY


MISTAKES = r"""
name = "add_fast" |  | key 'name' is missing
symbol = "nn_add_fast" | symbol = 3 | 'symbol' must be a string
symbol = "nn_add_fast" | symbl = "x" | unknown key 'symbl' | did you mean 'symbol'?
sources = ["fast/a.c", "fast/b.c"] | sources = [] | 'sources' must be a string or a list
op = ["ADD", "SUB"] | op = "ADDD" | operator kind 'ADDD' is unknown | did you mean 'ADD'?
op = ["ADD", "SUB"] | op = "@lookups" | operator kind '@lookups' is unknown | '@lookup'
op = ["ADD", "SUB"] | op = ["ADD", "ADD"] | 'add_fast' appears twice for ADD
overlap = "pixel" | overlap = "pixels" | overlap 'pixels' is unknown | none, row, pixel
cin % 4 | cinn % 4 | 'when': expression 'cinn % 4 == 0': unknown name 'cinn' | 'cin'
2 * cin | 2 * exit() | 'scratch': expression '2 * exit()'
100 + 3 | 100 +* 3 | 'cost': expression
[[kernel]] | [kernel] | must be an array of tables
[[kernel]] | [[kernels]] | unknown key 'kernels' | did you mean 'kernel'?
in1, in2 | in1, inn2 | 'call': argument 'inn2' is unknown | did you mean 'in2'?
call = "constants, in1, in2, out, window" |  | key 'call' is missing
overlap = "pixel" | windows = "some" | windows 'some' is unknown | any, whole
out, window" | out"\nslices = "True" | 'slices' needs a kernel that
"fast/a.c" | "../a.c" | source '../a.c' is neither
"fast/a.c" | "/tmp/a.c" | source '/tmp/a.c' is neither
[[kernel]] | [packing.p]\nbyte = '1'\n[[kernel]] | unknown key 'byte' | did you mean 'bytes'?
[[kernel]] | [packing.p]\nbytes = 'x'\n[[kernel]] | 'bytes': expression 'x'
[[kernel]] | [packing]\np = 3\n[[kernel]] | 'packing' must be tables
[[kernel]] | [[kernel | not a TOML file
"""


@mistakes(MISTAKES)
def test_a_mistake_in_a_catalogue_is_told_with_file_and_key(tmp_path, old, new, says, hint):
    assert old in ENTRY
    with pytest.raises(TargetError) as caught:
        load(tmp_path, ENTRY.replace(old, new))
    assert says in caught.value.text
    assert hint in caught.value.hint
    assert caught.value.path.startswith(str(tmp_path / "catalogue.toml"))


def test_names_stand_for_what_formulas_repeat(tmp_path):
    """Names of the file and of the kernel may use each other; a sum in a product gets parentheses."""
    shared = "[let]\nquads = 'ceil_div(cout, 4)'\nmore = 'cin + 1'\n"
    own = 'let.both = "2 * more"\nwhen = "quads > 1"\ncost = """\n  3 * both\n  + quads * more\n"""'
    catalogue = load(
        tmp_path,
        shared + ENTRY.replace('when = "cin % 4 == 0"', own).replace('cost = "100 + 3 * outputs"\n', ""),
    )
    (add, _) = catalogue.kernels
    assert add.when == "ceil_div(cout, 4) > 1"
    assert add.cost == "3 * (2 * (cin + 1)) + ceil_div(cout, 4) * (cin + 1)"
    assert catalogue.names["add_fast"] == {
        "quads": "ceil_div(cout, 4)",
        "more": "(cin + 1)",
        "both": "(2 * (cin + 1))",
    }


@pytest.mark.parametrize(
    ("let", "scratch", "says"),
    [
        ("wide = 'ciin'", "1", "'let.wide': expression 'ciin': unknown name 'ciin'"),
        ("cin = '2'", "1", "'cin' is not a name for an expression"),
        ("min = '2'", "1", "'min' is not a name for an expression"),
        ("'a b' = '2'", "1", "'a b' is not a name for an expression"),
        ("wide = 2", "1", "must be a string"),
        ("wide = 'vector_bits'", "wide", "'scratch': expression 'vector_bits': unknown name 'vector_bits'"),
        ("wide = 'cin'", "wiide", "unknown name 'wiide'"),
        (
            f"wide = 'max(1{', 100000' * 7})'\nmore = 'max(1{', wide' * 7})'",
            " + more" * 6,
            "longer than 2000",
        ),
    ],
)
def test_a_name_that_cannot_be_is_refused(tmp_path, let, scratch, says):
    with pytest.raises(TargetError) as caught:
        load(tmp_path, f"[let]\n{let}\n" + ENTRY.replace("2 * cin", scratch))
    assert says in caught.value.text
    assert caught.value.path.startswith(str(tmp_path / "catalogue.toml"))


LAYOUT = "[packing.add]\nbytes = '4 * cout'\nchannel_factors = '4'\nchannel_weights = '0'\n"


def test_a_packing_is_looked_for_in_the_own_family_first_then_in_others(tmp_path):
    folders = [tmp_path / name for name in ("mine", "first", "second")]
    for folder in folders:
        folder.mkdir()
    mine = load(folders[0], ENTRY)
    first, second = (load(folder, LAYOUT) for folder in folders[1:])
    assert {k.packer for k in resolve_packings(mine, [first, second])} == {folders[1] / "packing.py"}
    own = load(folders[0], LAYOUT + ENTRY)
    (add, _) = resolve_packings(own, [first])
    assert add.packer == folders[0] / "packing.py"
    assert (add.constants, add.channel_factors, add.channel_weights) == ("4 * cout", "4", "0")
    with pytest.raises(TargetError, match="packing 'add' is unknown") as caught:
        resolve_packings(mine, [load(folders[2], LAYOUT.replace("packing.add", "packing.addd"))])
    assert caught.value.hint == "did you mean 'addd'?"
    assert caught.value.path == str(folders[0] / "catalogue.toml")
    assert caught.value.operator == "add_fast"


def test_slices_need_a_packing_that_can_be_cut(tmp_path):
    sliced = ENTRY.replace('scratch = "2 * cin"', 'slices = "True"')
    with pytest.raises(TargetError, match="packing 'add' cannot be cut into channels"):
        resolve_packings(load(tmp_path, LAYOUT.splitlines()[0] + "\nbytes = '48'\n" + sliced))
    assert resolve_packings(load(tmp_path, LAYOUT + sliced))[0].slices == "True"


CONV = one_op(
    OpKind.CONV_2D, (2, 9, 10, 8), (6, 3, 5, 4), (2, 5, 10, 6),
    ConvAttrs(stride=(2, 1), dilation=(1, 2), pad=Pad(1, 0, 2, 3)),
)  # fmt: skip
DEPTHWISE = one_op(
    OpKind.DEPTHWISE_CONV_2D, (1, 8, 8, 4), (1, 3, 3, 8), (1, 4, 4, 8),
    DepthwiseAttrs(stride=(2, 2), pad=Pad(0, 1, 0, 1), depth_multiplier=2),
)  # fmt: skip
DENSE = one_op(OpKind.FULLY_CONNECTED, (2, 3, 4, 5), (7, 20), (6, 7), FullyConnectedAttrs())
POOL = one_op(
    OpKind.MAX_POOL_2D, (1, 7, 7, 3), None, (1, 4, 4, 3),
    PoolAttrs(kernel=(2, 3), stride=(2, 2), pad=Pad(1, 0, 1, 0)),
)  # fmt: skip
STATELESS = dict.fromkeys(("memory", "cells", "gates", "peepholes", "normed", "projected"), 0) | {"rank": 1}
WHOLE = dict.fromkeys(("narrow", "below", "lines", "scattered", "classes", "kept", "expanded", "stored"), 0)
WHOLE |= {"weights": 0}
PLAIN = one_op(OpKind.TANH, (1, 12), None, (1, 12), Attrs())


@pytest.mark.parametrize(
    ("graph_op", "expected"),
    [
        (
            CONV,
            "kh=3 kw=5 sh=2 sw=1 dh=1 dw=2 pt=1 pl=2 ih=9 iw=10 cin=8 oh=5 ow=10 cout=6 batch=2 groups=2"
            " multiplier=1 inputs=1440 operands=1 varying=0 macs=36000 outputs=600"
            " rows_met=13 rows_inside=3 columns_met=36 columns_inside=2",
        ),
        (
            DEPTHWISE,
            "kh=3 kw=3 sh=2 sw=2 dh=1 dw=1 pt=0 pl=0 ih=8 iw=8 cin=4 oh=4 ow=4 cout=8 batch=1 groups=4"
            " multiplier=2 inputs=256 operands=1 varying=0 macs=1152 outputs=128"
            " rows_met=11 rows_inside=3 columns_met=11 columns_inside=3",
        ),
        (
            DENSE,
            "kh=1 kw=1 sh=1 sw=1 dh=1 dw=1 pt=0 pl=0 ih=1 iw=6 cin=20 oh=1 ow=6 cout=7 batch=1 groups=1"
            " multiplier=1 inputs=120 operands=1 varying=0 macs=840 outputs=42"
            " rows_met=1 rows_inside=1 columns_met=6 columns_inside=6",
        ),
        (
            POOL,
            "kh=2 kw=3 sh=2 sw=2 dh=1 dw=1 pt=1 pl=1 ih=7 iw=7 cin=3 oh=4 ow=4 cout=3 batch=1 groups=1"
            " multiplier=1 inputs=147 operands=1 varying=0 macs=0 outputs=48"
            " rows_met=7 rows_inside=3 columns_met=10 columns_inside=2",
        ),
        (
            PLAIN,
            "kh=1 kw=1 sh=1 sw=1 dh=1 dw=1 pt=0 pl=0 ih=1 iw=1 cin=12 oh=1 ow=1 cout=12 batch=1 groups=1"
            " multiplier=1 inputs=12 operands=1 varying=1 macs=0 outputs=12"
            " rows_met=1 rows_inside=1 columns_met=1 columns_inside=1",
        ),
    ],
    ids=["conv", "depthwise", "dense", "pool", "plain"],
)
def test_features_are_the_operator_s_geometry(graph_op, expected):
    values = features(*graph_op)
    numbers = {name: int(value) for name, value in (pair.split("=") for pair in expected.split())}
    assert values == STATELESS | WHOLE | numbers
    assert values.keys() == VARIABLES.keys()


def test_features_of_operators_with_state_name_what_they_keep():
    net = NetBuilder(1)
    recurrent = lstm(
        net, net.input((5, 2, 6)), 7, outputs=3, time_major=True, input_gate=False, peepholes=True
    )
    over_time = svdf(net, net.input((2, 9)), 4, rank=2, memory=5)
    graph = net.graph([recurrent, over_time])
    first, second = (features(graph, op) for op in graph.ops)
    names = ("batch", "ow", "cin", "cells", "cout", "gates", "peepholes", "normed", "projected", "macs")
    assert [first[name] for name in names] == [2, 5, 6, 7, 3, 3, 1, 0, 1, 10 * (3 * 7 * 9 + 21)]
    assert [second[name] for name in ("batch", "cin", "cout", "rank", "memory", "macs")] == [
        2,
        9,
        4,
        2,
        5,
        224,
    ]


def variant(name, **fields):
    return KernelVariant(op="CONV_2D", name=name, symbol=name, sources=(), **fields)


def test_an_operator_without_a_kernel_is_unsupported_and_says_why():
    with pytest.raises(UnsupportedError, match="no kernel for MAX_POOL_2D") as caught:
        select(target(variant("conv")), *POOL)
    assert caught.value.operator == "#0 MAX_POOL_2D"
    assert caught.value.hint == "kernels exist for CONV_2D"
    with pytest.raises(UnsupportedError, match="of this shape") as caught:
        select(target(variant("one", when="groups == 1")), *CONV)
    assert "groups=2" in caught.value.hint
    assert "groups == 1 (one)" in caught.value.hint


def test_scratch_is_whole_bytes_and_cost_a_number():
    assert scratch_bytes(variant("a"), *CONV) == 0
    assert scratch_bytes(variant("a", scratch="kh * kw * cin * 2"), *CONV) == 240
    assert scratch_bytes(variant("a", scratch="kh / 2"), *CONV) == 2
    with pytest.raises(TargetError, match="-3 bytes of scratch"):
        scratch_bytes(variant("a", scratch="-kh"), *CONV)
    assert once(Pricer(Costs()), variant("a", cost="10 + 0.5 * outputs"), *CONV) == 310.0
    assert once(Pricer(Costs()), variant("a"), *CONV) == 36000.0
