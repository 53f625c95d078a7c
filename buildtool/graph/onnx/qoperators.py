"""QOperator format: QLinearConv and its kin written out as DequantizeLinear, operator, QuantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import ModelError
from buildtool.graph.onnx.file import Attribute, Node, OnnxFile


@dataclass(frozen=True)
class _Form:
    """Which operator it is, where its operands and the output's scale stand.

    `operands`: (value, scale, zero point) each; `output`: (scale, zero point); `axis`: along which
    the second operand, a weight, is quantised if it has several scales; `bias`: an int32 operand.
    """

    kind: str
    operands: Sequence[tuple[int, int, int]]
    output: tuple[int, int]
    axis: int = 0
    bias: int = -1


_ONE, _TWO = ((0, 1, 2),), ((0, 1, 2), (3, 4, 5))
_FORMS: Mapping[str, _Form] = {
    "QLinearConv": _Form("Conv", _TWO, (6, 7), 0, 8),
    "QLinearMatMul": _Form("MatMul", _TWO, (6, 7), -1),
    "QGemm": _Form("Gemm", _TWO, (7, 8), 0, 6),
    "QLinearAdd": _Form("Add", _TWO, (6, 7)),
    "QLinearMul": _Form("Mul", _TWO, (6, 7)),
    "QLinearAveragePool": _Form("AveragePool", _ONE, (3, 4)),
    "QLinearGlobalAveragePool": _Form("GlobalAveragePool", _ONE, (3, 4)),
    "QLinearReduceMean": _Form("ReduceMean", _ONE, (3, 4)),
    "QLinearSigmoid": _Form("Sigmoid", _ONE, (3, 4)),
    "QLinearLeakyRelu": _Form("LeakyRelu", _ONE, (3, 4)),
    "QLinearSoftmax": _Form("Softmax", _ONE, (3, 4)),
}


def expanded(file: OnnxFile) -> tuple[Node, ...]:
    """The file's operators, those in QOperator format written out in QDQ format."""
    found: list[Node] = []
    for node in file.nodes:
        if node.kind == "QLinearConcat":
            found += _concat(node)
        elif node.kind in _FORMS:
            found += _written_out(node, _FORMS[node.kind])
        else:
            found.append(node)
    return tuple(found)


def _dequantized(node: Node, operand: tuple[int, int, int], axis: int) -> Node:
    """The DequantizeLinear of an operand; its result has a name that no file has."""
    names = tuple(node.input(i) for i in operand)
    if not names[0] or not names[1]:
        raise ModelError("an operand or its scale is missing", operator=node.place)
    out = f"{names[0]}\0{node.index}.{operand[0]}"
    return Node("DequantizeLinear", names, (out,), {"axis": axis}, node.index, node.name)


def _quantized(node: Node, source: str, output: tuple[int, int]) -> Node:
    names = (source, node.input(output[0]), node.input(output[1]))
    return Node("QuantizeLinear", names, node.outputs[:1], {}, node.index, node.name)


def _written_out(node: Node, form: _Form) -> list[Node]:
    axis = form.axis
    if node.kind == "QGemm" and not node.attributes.get("transB", 0):
        axis = 1
    before = [_dequantized(node, operand, axis) for operand in form.operands]
    names = [n.outputs[0] for n in before]
    if form.bias >= 0 and node.input(form.bias):
        names.append(node.input(form.bias))
    attributes: dict[str, Attribute] = dict(node.attributes)
    if attributes.pop("channels_last", 0):
        raise ModelError("an operator with channels_last", operator=node.place)
    middle = f"{node.outputs[0] if node.outputs else ''}\0{node.index}"
    core = Node(form.kind, tuple(names), (middle,), attributes, node.index, node.name)
    return [*before, core, _quantized(node, middle, form.output)]


def _concat(node: Node) -> list[Node]:
    """QLinearConcat: the output's scale first, then three operands a part."""
    parts = [(i, i + 1, i + 2) for i in range(2, len(node.inputs), 3)]
    before = [_dequantized(node, part, 0) for part in parts]
    middle = f"{node.outputs[0] if node.outputs else ''}\0{node.index}"
    names = tuple(n.outputs[0] for n in before)
    core = replace(node, kind="Concat", inputs=names, outputs=(middle,))
    return [*before, core, _quantized(node, middle, (0, 1))]
