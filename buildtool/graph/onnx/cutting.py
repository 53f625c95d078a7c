"""Makes an .onnx file whose network ends earlier, with other tensors as outputs."""

from collections.abc import Sequence

from buildtool.base.errors import UsageError
from buildtool.graph.onnx.file import Proto, parse_model, printable_name


def name_as_read(name: str) -> str:
    """Returns a tensor's whole name in the form in which the reader shows it: long names are shortened."""
    return printable_name(name)


def made_tensors(data: bytes) -> list[str]:
    """Returns the names of the tensors that operators write, in the operators' order."""
    return [printable_name(name) for node in parse_model(data).graph.node for name in node.output if name]


def end_at(data: bytes, names: Sequence[str]) -> bytes:
    """Returns the file with the tensors `names` as its outputs (see `made_tensors`).

    The result has the operators, constants and inputs that these outputs need. If a float tensor is only
    quantised afterwards, the network ends with the QuantizeLinear, which has the scale.
    """
    model = parse_model(data)
    graph = model.graph
    written = {printable_name(name): name for node in graph.node for name in node.output}
    outputs = list(dict.fromkeys(_quantized(graph, written[name]) for name in names))
    kept = _needed(graph, outputs)
    read = {name for node in kept for name in node.input}
    fed = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    if read.isdisjoint(fed):
        raise UsageError("the outputs need no input of the network", option="outputs")
    types = {value.name: value for value in (*graph.output, *graph.value_info)}
    made = [types.get(name) for name in outputs]
    for field, values in (
        ("node", kept),
        ("input", [value for value in graph.input if value.name in read]),
        ("initializer", [tensor for tensor in graph.initializer if tensor.name in read]),
        ("value_info", []),
    ):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        graph.ClearField(field)
        getattr(graph, field).extend(copies)
    described = [value and value.SerializeToString() for value in made]
    graph.ClearField("output")
    for name, value in zip(outputs, described, strict=True):
        output = graph.output.add()
        if value:
            output.ParseFromString(value)
        output.name = name
    result: bytes = model.SerializeToString(deterministic=True)
    return result


def _quantized(graph: Proto, name: str) -> str:
    """Returns the output of the QuantizeLinear that reads `name`, or `name` if there is none."""
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and node.input and node.input[0] == name:
            return str(node.output[0])
    return name


def _needed(graph: Proto, outputs: Sequence[str]) -> list[Proto]:
    """Returns the operators that compute `outputs`, in the file's order, in which writers precede readers."""
    wanted, kept = set(outputs), []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]
