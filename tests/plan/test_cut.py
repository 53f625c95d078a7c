"""A network that ends earlier computes what the whole network has there, and needs no more than that."""

import re
from functools import partial

import numpy as np
import onnx
import pytest
from everyop import every_operator
from flatfiles import FileOperator, FileTensor
from graphs import inputs_for
from litert import interpreter, run
from onnx.reference import ReferenceEvaluator
from onnxnets import many_operators
from samplefiles import Sheet
from statenets import delays, feedback, reshaped, windows

from buildtool import api, zoo
from buildtool.base.errors import BuildtoolError, PlanError, UnsupportedError, UsageError
from buildtool.base.files import Cut, File
from buildtool.base.session import Session
from buildtool.graph.reference import execute
from buildtool.graph.tflite.cutting import made_tensors
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.plan.models import load_model, read_graph

handle = partial(api.handle, session=Session())  # makes a network's tables once


def cut(data, *names, suffix=".tflite"):
    """The file `data`, cut at tensors or layers."""
    return load_model(Cut(File(f"/net{suffix}", data=data), names)).data


def test_every_tensor_of_a_network_can_be_its_output_and_has_the_same_value():
    whole = every_operator()
    data, feed = write_model(whole), inputs_for(whole, 3)
    fed = dict(zip(whole.inputs, feed, strict=True))
    values, makers = run(data, feed), whole.producers()
    tensors = [t for op in whole.ops for t in op.outputs if whole.tensors[t].dtype.size == 1]
    for first, second in zip(tensors[::9], tensors[::-9], strict=True):
        pair = list(dict.fromkeys((first, second)))
        ends = cut(data, *(whole.tensors[t].name for t in pair))
        graph = read_model(ends)
        used = [graph.tensors[t].source.index for t in graph.inputs]
        assert len(graph.ops) <= max(makers[t] for t in pair) + 1
        assert set(used) <= set(whole.inputs) and all(graph.consumers()[t] for t in graph.inputs)
        given = [fed[t] for t in used]
        ours, theirs = execute(graph, given), run(ends, given)
        for t, out in zip(pair, graph.outputs, strict=True):
            assert np.array_equal(ours[out], values[t].reshape(ours[out].shape)), graph.tensors[out].name
            assert np.array_equal(theirs[t], values[t])


@pytest.mark.parametrize("make", [windows, feedback, delays, reshaped], ids=lambda make: make.__name__)
def test_a_state_that_the_outputs_need_lives_on(make):
    whole = make(4)
    data = write_model(whole)
    for position, op in enumerate(whole.ops):
        try:
            ends = cut(data, whole.tensors[op.outputs[0]].name)
        except UsageError as error:
            assert "need no input" in error.text and make in (delays, reshaped)
            continue
        before = interpreter(data)
        after = interpreter(ends)
        for seed in range(3):
            given = dict(zip(whole.inputs, inputs_for(whole, seed), strict=True))
            for engine in (before, after):
                for detail in engine.get_input_details():
                    engine.set_tensor(detail["index"], given[detail["index"]])
                engine.invoke()
            same = [engine.get_tensor(op.outputs[0]) for engine in (before, after)]
            assert np.array_equal(*same), position
        assert len(read_model(ends).states) <= len(whole.states)


def test_an_operator_that_is_refused_may_stand_behind_the_outputs():
    sheet = Sheet()
    x = sheet.add(FileTensor((1, 4, 4, 2)))
    made = sheet.apply("RELU", [x], (1, 4, 4, 2))
    sheet.tensors.append(FileTensor((1, 4, 4, 2)))
    sheet.operators.append(FileOperator("CUSTOM", [made], [len(sheet.tensors) - 1], custom="Secret"))
    data = sheet.bytes([x], [len(sheet.tensors) - 1])
    with pytest.raises(UnsupportedError, match="custom operator"):
        read_model(data)
    graph = read_model(cut(data, made_tensors(data)[0]))
    assert [op.kind for op in graph.ops] == [OpKind.RELU]


def test_an_unknown_name_is_told_with_those_that_are_close():
    for name, hint in (("stack3/ad", "did you mean 'stack3/add'"), ("?", "the last are .*'probabilities'")):
        with pytest.raises(UsageError, match=r"no operator .* called") as caught:
            handle({"kind": "plan", "model": "resnet8", "board": "host", "options": {"outputs": name}})
        assert caught.value.option == "outputs"
        assert re.search(hint, caught.value.hint)
    with pytest.raises(UsageError, match="not a name"):
        handle({"kind": "plan", "model": "resnet8", "board": "host", "options": {"outputs": "a,,b"}})
    data = zoo.build("resnet8")
    image = read_model(data).tensors[0].name  # nothing computes an input
    with pytest.raises(UsageError, match="no operator"):
        cut(data, image)


def test_any_name_of_a_tensor_can_be_given_and_hints_name_what_can_be():
    sheet = Sheet()
    x = sheet.add(FileTensor((1, 4)))
    shown = ["a b", " lead", "größe/層", "b?c", "é" * 100, "x,y", "-o"]
    for name in ("a b", " lead", "größe/層", "b\nc", "é" * 300, "x,y", "-o"):
        x = sheet.apply("RELU", [x], (1, 4), name=name)
        data = sheet.bytes([0], [x])
        ends = [cut(data, one) for one in {name, name.strip(), shown[len(sheet.operators) - 1]}]
        assert len({made_tensors(end)[-1] for end in ends}) == 1 and len(set(ends)) == 1
    for unknown in ("x", "lead ", "x,", "\ud800"):
        with pytest.raises(UsageError, match="no operator") as caught:
            cut(data, unknown + "!")
        hinted = re.findall("'([^']*)'", caught.value.hint)
        assert hinted and not any("," in one for one in hinted)
        assert all(cut(data, one.strip()) for one in hinted)


def test_a_layer_that_is_a_part_of_an_operator_has_no_tensor():
    data = write_model(every_operator())
    _, graph = read_graph(load_model(File("/net.tflite", data=data)))
    layers = [graph.op_name(position) for position in range(len(graph.ops))]
    parts = set(layers) - set(made_tensors(data))
    assert parts
    for part in parts:
        with pytest.raises(UsageError, match=f"layer '{part}' is a part of an operator") as caught:
            cut(data, part)
        hinted = re.findall("'([^']*)'", caught.value.hint)
        assert not parts.intersection(hinted)
        assert hinted == [part.partition("/")[0]] or part.partition("/")[0] not in made_tensors(data)


def test_a_plan_file_is_for_the_network_that_ends_there(tmp_path):
    asked = {"kind": "emit", "model": "resnet8", "board": "host"}
    cut_there, path = {"options": {"outputs": "pool"}}, tmp_path / "net.plan"
    files = handle({**asked, **cut_there})["files"]
    path.write_bytes(files["resnet8.plan"])
    assert handle({**asked, **cut_there, "plan": str(path)})["files"] == files
    with pytest.raises(PlanError, match="another network"):
        handle({**asked, "plan": str(path)})


def test_an_onnx_file_ends_at_a_tensor_or_behind_its_quantisation():
    model = many_operators()
    data = model.SerializeToString()
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    feed = {"image": np.random.default_rng(1).normal(size=(1, 2, 4, 4)).astype(np.float32)}
    cuts = [name for name, kind in makers.items() if kind in ("QuantizeLinear", "Relu", "Mul")]
    assert len(cuts) > 5
    for name in cuts:
        ends = cut(data, name, suffix=".onnx")
        out = onnx.load_from_string(ends)
        (made,) = (one.name for one in out.graph.output)
        assert {n.op_type for n in out.graph.node if made in n.output} == {"QuantizeLinear"}
        whole = onnx.load_from_string(data)
        whole.graph.output.add().name = made
        expected = ReferenceEvaluator(whole).run([made], feed)[0]
        assert np.array_equal(ReferenceEvaluator(out).run(None, feed)[0], expected)
        assert len(out.graph.node) < len(model.graph.node) or made == cuts[-1]
        assert cut(data, name, made, suffix=".onnx") == ends


def test_old_onnx_files_list_constants_as_inputs_which_feed_nothing():
    model = many_operators()
    for tensor in model.graph.initializer:
        model.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    constants = {tensor.name for tensor in model.graph.initializer}
    weights = next(node.output[0] for node in model.graph.node if constants.issuperset(node.input))
    with pytest.raises(UsageError, match="need no input"):
        cut(model.SerializeToString(), weights, suffix=".onnx")


def test_a_damaged_file_gives_an_error_or_a_network():
    data, rng = write_model(windows(4)), np.random.default_rng(3)
    name = made_tensors(data)[-1]
    for _ in range(200):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            damaged[place] ^= 1 << rng.integers(8)
        try:
            read_model(cut(bytes(damaged), name))
        except BuildtoolError as error:
            assert error.text


@pytest.mark.slow
def test_firmware_of_such_a_network_equals_litert_on_a_board():
    asked = {"kind": "validate", "model": "resnet8", "board": "cortex-m4", "tensors": True}
    answer = handle({**asked, "options": {"outputs": "stack2/add,stack1/add"}})
    assert answer["exact"] and answer["reference"]["name"] == "litert"
