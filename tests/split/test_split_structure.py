"""Split Keras models equal originals without weights between branches; and refused models."""

import math
from dataclasses import replace

import numpy as np
import pytest
from needs import needs_package

from buildtool.base.errors import UnsupportedError
from buildtool.split.branches import find_blocks, split_steps
from buildtool.split.graphs import steps_of
from buildtool.split.networks import by_name, steps_by_name
from buildtool.split.structure import build
from buildtool.split.types import Choice, Fusion, counts_in

pytestmark = pytest.mark.slow  # TensorFlow takes seconds to import


@pytest.fixture(scope="module")
def keras():
    return needs_package("keras")


class Chain:
    """Builds a small functional model layer by layer; every convolution has batch normalisation."""

    def __init__(self, keras, size=8, channels=3):
        self.keras, self.layers = keras, keras.layers
        self.x = self.image = keras.Input((size, size, channels), name="image")

    def __call__(self, kind, *args, inputs=None, **settings):
        layer = getattr(self.layers, kind)(*args, **settings)
        self.x = layer(self.x if inputs is None else inputs)
        return self.x

    def conv(self, filters, size=3, strides=1, **settings):
        settings = {"padding": "same", "use_bias": False, **settings}
        self("Conv2D", filters, size, strides, **settings)
        self("BatchNormalization")
        return self("ReLU")

    def model(self):
        return self.keras.Model(self.image, self.x)


def chain(keras):
    """Biases and activations inside layers, activations as layers, two poolings, dropout, Flatten."""
    net = Chain(keras)
    net("Rescaling", 0.5)
    net("Conv2D", 8, 3, padding="same", activation="relu")
    net("ZeroPadding2D", 1)
    net("Conv2D", 12, 3)
    net("PReLU", shared_axes=[1, 2], alpha_initializer="random_normal")
    net("MaxPooling2D")
    net("SpatialDropout2D", 0.5)
    net.conv(8)
    net.conv(16)
    net("AveragePooling2D", 2)
    net("Flatten")
    net("Dropout", 0.5)
    net("Dense", 4, activation="softmax")
    return net.model()


def residual(keras):
    """An identity shortcut after a pooling, a projection with strides, an addition by an operator."""
    net = Chain(keras)
    net.conv(8)
    before = net("MaxPooling2D")
    after = net.conv(8)
    net("Add", inputs=[before, after])
    before = net("Activation", "relu")
    shortcut = net("Conv2D", 12, 1, 2, padding="same")
    net.x = before
    net.conv(12, strides=2)
    net.x = keras.ops.relu(net.conv(12) + shortcut)
    net("GlobalAveragePooling2D")
    net("Dense", 4)
    return net.model()


def mobile(keras):
    """Depthwise and separable convolutions, one with a multiplier, squeeze and excitation."""
    net = Chain(keras)
    net.conv(8)
    net("DepthwiseConv2D", 3, padding="same", use_bias=False)
    net("BatchNormalization")
    net.conv(8, 1)
    net("DepthwiseConv2D", 3, 2, padding="same", depth_multiplier=2)
    scaled = net("SeparableConv2D", 12, 3, padding="same")
    net("GlobalAveragePooling2D", keepdims=True)
    net("Conv2D", 6, 1, activation="relu")
    gate = net("Conv2D", 12, 1, activation="sigmoid")
    net("Multiply", inputs=[scaled, gate])
    net("GlobalMaxPooling2D")
    net("Dense", 4)
    return net.model()


def dense_and_grouped(keras):
    """A grouped convolution, concatenations, a transposed convolution; no dense layer."""
    net = Chain(keras)
    first = net.conv(8)
    second = net("Conv2D", 8, 3, padding="same", groups=4)
    net("Concatenate", inputs=[first, second])
    net.conv(8)
    net("MaxPooling2D")
    net("Conv2DTranspose", 8, 3, 2, padding="same", activation="relu")
    net("MaxPooling2D")
    net("Conv2D", 4, 1)
    return net.model()


def one_dimension(keras):
    """Convolutions of one dimension, as for sound."""
    net = Chain(keras)
    net.x = net.image = keras.Input((16, 3))
    net("Conv1D", 8, 3, padding="same", activation="relu")
    net("DepthwiseConv1D", 3, padding="same")
    net("BatchNormalization")
    net("MaxPooling1D", 2)
    net("Conv1D", 12, 3, strides=2, padding="same", activation="tanh")
    net("Conv1DTranspose", 8, 3, padding="same")
    net("GlobalAveragePooling1D")
    net("Dense", 4)
    return net.model()


def randomised(model):
    """Gives a model random weights, with variances above 0."""
    random = np.random.default_rng(5)
    for layer in model.layers:
        weights = [random.normal(0.1, 0.5, weight.shape) for weight in layer.weights]
        if type(layer).__name__ == "BatchNormalization":
            weights[3] = np.abs(weights[3]) + 0.5
        layer.set_weights(weights)
    return model


def cut_between_branches(model, blocks, choice):
    """Sets every weight between channels of different branches to zero."""
    steps = {step.name: step for step in steps_of(model)}
    parts_of = {}
    for step in split_steps(tuple(steps.values()), blocks, choice):
        if step.is_mixing and step.part and step.part.source:
            parts_of.setdefault(step.part.source, []).append(step.part)
    for name, parts in parts_of.items():
        layer, weights = model.get_layer(name), model.get_layer(name).get_weights()
        if steps[name].groups > 1:
            continue
        kernel = 1 if steps[name].kind == "SeparableConv2D" else 0
        is_transposed = steps[name].kind.endswith("Transpose")
        whole = np.swapaxes(weights[kernel], -1, -2) if is_transposed else weights[kernel]
        mask = np.zeros(whole.shape[-2:])
        for part in parts:
            reads = range(mask.shape[0]) if part.reads is None else part.reads
            mask[np.ix_(reads, part.writes)] = 1
        weights[kernel] = np.swapaxes(whole * mask, -1, -2) if is_transposed else whole * mask
        layer.set_weights(weights)


def shuffle(model, steps, split):
    """Shuffles the channels of each convolution whose readers are all in the same split block."""
    random = np.random.default_rng(11)
    inner = {step.part.source for step in split if step.part and step.kind != "Slice"}
    sliced = {step.part.source for step in split if step.kind == "Slice"}
    weighted = {type(layer).__name__ for layer in model.layers if layer.weights}
    shuffled = 0
    for step in steps:
        follows = followers(steps, step.name)
        plain = [one.kind not in ("Add", "Multiply") and one.multiplier == 1 for one in follows]
        names = {step.name, *(one.name for one in follows)}
        if step.is_mixing and all(plain) and names <= inner and not names & sliced:
            order = random.permutation(step.channels)
            for one in (step, *follows):
                if one.kind in weighted:
                    reorder(model.get_layer(one.name), one, order, one is not step and one.is_mixing)
            shuffled += 1
    return shuffled


def followers(steps, name):
    """The channelwise steps after a step, with the convolutions at their ends."""
    following = []
    for one in [one for one in steps if name in one.inputs]:
        following += [one] if one.is_mixing else [one, *followers(steps, one.name)]
    return following


def reorder(layer, step, order, inputs):
    """Reorders a layer's output channels or, with `inputs`, its input channels."""
    kernel, *others = layer.get_weights()
    if step.kind == "SeparableConv2D":
        others[0] = others[0].take(order, -1)
        others[1:] = [bias[order] for bias in others[1:]]
    elif inputs:
        kernel = kernel.take(order, -1 if step.kind.endswith("Transpose") else -2)
    else:
        is_transposed = step.kind.endswith("Transpose") or step.kind.startswith("Depthwise")
        kernel = kernel.take(order, -2 if is_transposed else -1)
        others = [one.take(order, -1) for one in others]
    layer.set_weights([kernel, *others])


def outputs(model):
    image = np.random.default_rng(7).random((2, *model.input_shape[1:]), np.float32)
    return np.asarray(model(image))  # of any backend


def equal(weights, others):
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(one, other)


def kernels_of(layer):
    """The kernels of a convolution, or of a fusion block's dense layer."""
    own = type(layer).__name__ != "Dense" or layer.name.endswith("_fusion")
    return [one for one in layer.weights if own and "kernel" in one.name]


CASES = {
    "fused": (chain, Choice((4, 2))),
    "fused, uneven": (chain, Choice((3, 3))),
    "fused, full": (chain, Choice((2, 4), "full")),
    "naive": (chain, Choice((4, 4), fusion=Fusion.NAIVE)),
    "naive from the second block": (chain, Choice((1, 2), "full", Fusion.NAIVE)),
    "shared": (chain, Choice((4, 4), "full", Fusion.SHARED, 2)),
    "residual": (residual, Choice((2, 4, 3))),
    "residual, full": (residual, Choice((2, 2, 4), "full")),
    "residual, naive": (residual, Choice((4, 4, 4), fusion=Fusion.NAIVE)),
    "residual, shared": (residual, Choice((2, 2, 2), fusion=Fusion.SHARED, shared=2)),
    "depthwise": (mobile, Choice((2, 3), "full")),
    "depthwise, slice": (mobile, Choice((4, 2))),
    "one dimension": (one_dimension, Choice((2, 4))),
    "grouped, concatenated, transposed": (dense_and_grouped, Choice((2, 4))),
}


@pytest.mark.parametrize("case", CASES)
def test_without_weights_between_branches_nothing_changes(keras, case):
    network, choice = CASES[case]
    model = randomised(network(keras))
    blocks = find_blocks(model)
    split = build(model, blocks, choice, grouped=False)
    cut_between_branches(model, blocks, choice)  # the split network has none of these weights
    np.testing.assert_allclose(outputs(split), outputs(model), rtol=2e-4, atol=2e-5)
    assert len(split.layers) > len(model.layers)
    counts, kernels = counts_in(steps_of(split)), [one for layer in split.layers for one in kernels_of(layer)]
    assert counts.convolutions + counts.fusion == sum(math.prod(one.shape) for one in kernels)


HIDDEN = ["fused", "fused, full", "residual", "residual, full", "depthwise, slice", "one dimension", "shared"]


@pytest.mark.parametrize("case", HIDDEN)
def test_branches_that_lie_hidden_in_the_order_of_channels_are_found(keras, case):
    """A network of independent branches with shuffled channels is equal to its split form."""
    network, choice = CASES[case]
    model = randomised(network(keras))
    blocks = find_blocks(model)
    cut_between_branches(model, blocks, choice)
    expected = outputs(model)
    steps = steps_of(model)
    assert shuffle(model, steps, split_steps(steps, blocks, choice))
    np.testing.assert_allclose(outputs(model), expected, rtol=2e-4, atol=2e-5)
    split = build(model, blocks, choice)
    np.testing.assert_allclose(outputs(split), expected, rtol=2e-4, atol=2e-5)


def test_a_factor_of_one_keeps_layers_and_weights(keras):
    model = randomised(residual(keras))
    before = [weight.copy() for weight in model.get_weights()]
    blocks = find_blocks(model)
    whole = build(model, blocks, Choice.whole(len(blocks)))
    assert [one.name for one in whole.operations] == [one.name for one in model.operations]
    np.testing.assert_array_equal(outputs(whole), outputs(model))
    split = build(model, blocks, Choice((1, 2, 1)))
    whole_names = {name for block in (blocks[0], blocks[2]) for name in block.layers}
    layers = [layer for layer in model.layers if layer.name in whole_names]
    assert len(layers) > 8
    for layer in layers:
        same = split.get_layer(layer.name)
        assert same is not layer
        equal(same.get_weights(), layer.get_weights())
    equal(model.get_weights(), before)


def test_trained_weights_of_split_and_whole_layers_are_taken_over(keras, tmp_path):
    """The search splits one more block of the network that it has trained so far."""
    model = chain(keras)
    blocks = find_blocks(model)
    trained = randomised(build(model, blocks, Choice((4, 1))))
    trained.save(tmp_path / "trained.keras")
    trained = keras.models.load_model(tmp_path / "trained.keras")
    split = build(model, blocks, Choice((4, 2)), weights=trained, grouped=False)
    names = [one.name for one in split.operations]
    assert names == [one.name for one in build(model, blocks, Choice((4, 2))).operations]
    names_trained = {layer.name for layer in trained.layers}
    same = [layer for layer in split.layers if layer.name in names_trained]
    assert any("_k4b3" in layer.name for layer in same)
    for layer in same:
        equal(layer.get_weights(), trained.get_layer(layer.name).get_weights())
    second = next(step for step in steps_of(trained) if step.name in blocks[1].layers and step.is_mixing)
    kernel = trained.get_layer(second.name).get_weights()[0]
    part = split.get_layer(f"{second.name}_k2b1").get_weights()[0]
    np.testing.assert_array_equal(part, kernel[:, :, 6:, 4:])


def test_the_networks_by_name_are_what_their_records_say(keras):
    model, again = (by_name("resnet18", 0.0625, 8) for _ in range(2))
    other = by_name("resnet18", 0.0625, 8, seed=1)
    records = {step.name: replace(step, refused="") for step in steps_of(model)}
    assert records == {step.name: step for step in steps_by_name("resnet18", 0.0625, 8)}
    first = [one.get_layer("stem").get_weights()[0] for one in (model, again, other)]
    np.testing.assert_array_equal(first[0], first[1])
    assert (first[0] != first[2]).all()


def test_sequential_models_and_models_inside_models_are_split(keras):
    inner = keras.Sequential(name="inner")
    inner.add(keras.Input((8, 8, 3)))
    for filters in (8, 8):  # every addition calls the layers before it again
        inner.add(keras.layers.Conv2D(filters, 3, padding="same"))
        inner.add(keras.layers.BatchNormalization())
        inner.add(keras.layers.MaxPooling2D())
    image = keras.Input((8, 8, 3))
    inner.layers[0].trainable = False
    features = inner(image)
    outer = keras.Model(image, keras.layers.Dense(4)(keras.layers.Flatten()(features)))
    for model in (inner, outer):
        randomised(inner)
        blocks = find_blocks(model)
        assert len(blocks) == 2
        choice = Choice((2, 4), "full")
        split = build(model, blocks, choice, grouped=False)
        cut_between_branches(inner, find_blocks(inner), choice)
        np.testing.assert_allclose(outputs(split), outputs(model), rtol=2e-4, atol=2e-5)
    assert all(name.startswith("inner_") for name in blocks[0].layers)
    assert not split.get_layer(f"{blocks[0].layers[0]}_k2b1").trainable


# ---- what is refused -----------------------------------------------------------------------------


def shared_layer(keras, net):
    layer = keras.layers.Conv2D(3, 3, padding="same", name="twice")
    return keras.Model(net.image, layer(layer(net.image)))


def classifier(net, *layer, **settings):
    """A network of a convolution, or a convolution and this layer, and a dense layer."""
    if layer:
        net("Conv2D", 8, 3)
    net(*(layer or ("Conv2D", 8, 3)), **settings)
    net("Flatten")
    net("Dense", 4)
    return net.model()


def sequential(keras, *before):
    return keras.Sequential([*before, keras.layers.Conv2D(8, 3)])


def refused(keras):
    """Models by the reason for their refusal."""
    two, turned, norm, soft = (Chain(keras) for _ in range(4))
    turned("MaxPooling2D", data_format="channels_first", name="turned")
    return {
        "the model has 2 inputs": keras.Model([two.image, keras.Input((3,), name="other")], two.conv(8)),
        "twice: the layer is used in two places": shared_layer(keras, Chain(keras)),
        "turned: its channels come first": turned.model(),
        r"input \(None, None, 3\) is not fixed": sequential(keras, keras.Input((None, None, 3))),
        "has no input shape": sequential(keras),
        "norm: .* LayerNormalization are not split": classifier(norm, "LayerNormalization", name="norm"),
        "layer soft: .* softmax reads all channels": classifier(soft, activation="softmax", name="soft"),
        "Mine .* has no graph of its layers": type("Mine", (keras.Model,), {})(),
    }


def test_what_cannot_be_split_is_named_with_its_reason(keras):
    for said, model in refused(keras).items():
        with pytest.raises(UnsupportedError, match=said):
            find_blocks(model)
