"""QOperator format: QLinearConv and its kin written out as DequantizeLinear, operator, QuantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildtool.base.errors import ModelError
from buildtool.graph.onnx.file import Attribute, Node, OnnxFile


@dataclass(frozen=True)
class _Form:
    """Which operator it is, and where its operands and the output's scale stand.

    `operands`: the first inputs of (value, scale, zero point); `output`: that of (scale, zero point); `axis`:
    along which the second operand, a weight, is quantised if it has several scales; `bias`: an int32 operand.
    """

    kind: str
    operands: Sequence[int]
    output: int
    axis: int = 0
    bias: int = -1


_FORMS: Mapping[str, _Form] = {
    "QLinearConv": _Form("Conv", (0, 3), 6, 0, 8),
    "QLinearMatMul": _Form("MatMul", (0, 3), 6, -1),
    "QGemm": _Form("Gemm", (0, 3), 7, 0, 6),
    "QLinearAdd": _Form("Add", (0, 3), 6),
    "QLinearMul": _Form("Mul", (0, 3), 6),
    "QLinearAveragePool": _Form("AveragePool", (0,), 3),
    "QLinearGlobalAveragePool": _Form("GlobalAveragePool", (0,), 3),
    "QLinearReduceMean": _Form("ReduceMean", (0,), 3),
    "QLinearSigmoid": _Form("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": _Form("LeakyRelu", (0,), 3),
    "QLinearSoftmax": _Form("Softmax", (0,), 3),
}


def expanded(file: OnnxFile) -> tuple[Node, ...]:
    """The file's operators, those in QOperator format written out in QDQ format."""
    found: list[Node] = []
    for node in file.nodes:
        if node.kind == "QLinearConcat":  # the output's scale first, then three operands a part
            found += _written_out(node, _Form("Concat", range(2, len(node.inputs), 3), 0))
        elif node.kind in _FORMS:
            found += _written_out(node, _FORMS[node.kind])
        else:
            found.append(node)
    return tuple(found)


def _written_out(node: Node, form: _Form) -> list[Node]:
    """The results in between have names that no file has."""
    made: list[Node] = []

    def add(
        kind: str, inputs: Sequence[str], out: Sequence[str], attributes: Mapping[str, Attribute]
    ) -> None:
        made.append(Node(kind, tuple(inputs), tuple(out), attributes, node.index, node.name))

    axis = 1 if node.kind == "QGemm" and not node.attributes.get("transB", 0) else form.axis
    for first in form.operands:
        names = [node.input(first + i) for i in range(3)]
        if not names[0] or not names[1]:
            raise ModelError("an operand or its scale is missing", operator=node.place)
        add("DequantizeLinear", names, [f"{names[0]}\0{node.index}.{first}"], {"axis": axis})
    operands = [n.outputs[0] for n in made]
    if form.bias >= 0 and node.input(form.bias):
        operands.append(node.input(form.bias))
    attributes = dict(node.attributes)
    if attributes.pop("channels_last", 0):
        raise ModelError("an operator with channels_last", operator=node.place)
    middle = f"{node.outputs[0] if node.outputs else ''}\0{node.index}"
    add(form.kind, operands, [middle], attributes)
    scale = [node.input(form.output + i) for i in range(2)]
    add("QuantizeLinear", [middle, *scale], node.outputs[:1], {})
    return made
