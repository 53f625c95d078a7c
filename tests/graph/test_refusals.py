"""One error for all refused operators: it names every kind and every cause, with a hint per cause."""

import itertools

import pytest
from flatfiles import FileOperator, FileTensor, write

from buildtool.base.errors import UnsupportedError
from buildtool.graph.tflite.cutting import end_at
from buildtool.graph.tflite.reader import read_model


def refusal(tensors, operators, inputs=(0,), outputs=(1,)):
    with pytest.raises(UnsupportedError) as caught:
        read_model(write(tensors, operators, list(inputs), list(outputs)), path="x.tflite")
    return caught.value


def test_each_cause_has_its_own_hint():
    cases = [  # operator, custom code, type of its input, a word of the cause, a word of the hint
        ("RELU", "", "uint8", "uint8", "again with int8 quantisation"),
        ("HARD_SWISH", "", "int16", "int16", "in place of EXPERIMENTAL_TFLITE"),
        ("SPACE_TO_DEPTH", "", "float32", "float32", "quantise the float network"),
        ("SVDF", "", "float32", "leaves as it is", "re-export with full-integer int8"),
        ("CUSTOM", "Mine", "int8", "a custom operator", "built-in operators"),
        ("CUSTOM", "FlexErf", "int8", "(flex)", "SELECT_TF_OPS"),
        ("BIDIRECTIONAL_SEQUENCE_LSTM", "", "int8", "with state", "make its state an input and an output"),
        ("ATAN2", "", "int8", "not supported", "use one of"),
        ("RELU", "", "uint32", "uint32", "in the application, before the network"),
    ]
    tensors, operators = [], []
    for i, (kind, custom, dtype, _, _) in enumerate(cases):
        out_dtype = "int8" if dtype == "uint8" else dtype
        tensors += [FileTensor((1, 4), dtype), FileTensor((1, 4), out_dtype)]
        operators.append(FileOperator(kind, [2 * i], [2 * i + 1], custom=custom))
    error = refusal(tensors, operators, range(0, 18, 2), [17])
    causes = error.text.splitlines()[1:]
    assert len(causes) == len(error.hints) == 9
    for *_, word, words in cases:
        assert any(word in cause for cause in causes), word
        assert any(word in hint.text and words in hint.text for hint in error.hints), word


@pytest.mark.parametrize(("last", "hinted"), [("CUSTOM", "relu"), ("RELU", None)])
def test_the_network_may_end_before_a_custom_operator_that_is_its_last(last, hinted):
    """Decoders of poses and boxes; what ends there is read."""
    tensors = [FileTensor((1, 4), name=name) for name in ("x", "relu", "y")]
    kinds = {"RELU": (0, 1), "CUSTOM": (1, 2)} if last == "CUSTOM" else {"CUSTOM": (0, 1), "RELU": (1, 2)}
    operators = [
        FileOperator(kind, [a], [b], custom="Decoder" if kind == "CUSTOM" else "")
        for kind, (a, b) in kinds.items()
    ]
    error = refusal(tensors, operators, outputs=[2])
    found = dict(setting for hint in error.hints for setting in hint.settings).get("outputs")
    assert found == hinted
    if hinted:
        graph = read_model(end_at(write(tensors, operators, [0], [2]), [hinted]))
        assert [str(op.kind) for op in graph.ops] == ["RELU"]


def test_the_line_that_quantises_is_the_last_hint_and_only_for_whole_networks():
    def net(*types):
        tensors = [FileTensor((1, 4), types[0]), *(FileTensor((1, 4), dtype) for dtype in types)]
        kind = "LOGICAL_NOT"  # without a form of float32
        kinds = [kind, *("DEQUANTIZE" if a != b else kind for a, b in itertools.pairwise(types)), "ATAN2"]
        tensors.append(FileTensor((1, 4), types[-1]))
        operators = [FileOperator(kind, [i], [i + 1]) for i, kind in enumerate(kinds)]
        return refusal(tensors, operators, [0], [len(kinds)])

    whole, partly = net("float32", "float32"), net("int8", "float32", "float32")
    line = "quantise it: buildtool quantize x.tflite --data DATA -o x_int8.tflite"
    assert whole.hints[-1].text == f"for float32 activations: {line}" and "use one of" in whole.hint
    assert whole.hints[-2].settings == (("model", "x_int8.tflite"),)
    assert "quantise the float network" in partly.hint and "x_int8" not in partly.hint
