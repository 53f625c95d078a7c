"""A tiny network to split, and small data for it."""

import numpy as np

from buildtool.split.data import Data

SIZE = 8


def data(images=96, classes=2):
    """Returns images whose class is their bright side. They are the same in every process."""
    random = np.random.default_rng(7)
    y = np.arange(images) % classes
    x = random.integers(0, 120, (images, SIZE, SIZE, 3))
    for index, label in enumerate(y):
        x[index, :, label * SIZE // classes : (label + 1) * SIZE // classes] += 100
    half = images * 2 // 3
    pixels = x.astype(np.uint8)
    return Data(
        pixels[:half], y[:half], pixels[half:], y[half:], tuple(f"class {index}" for index in range(classes))
    )


def network(classes=2, channels=4, blocks=2, dropout=False, shortcut=False):
    """Returns blocks of a convolution and batch normalisation (momentum 0.5), and a dense layer.

    `shortcut`: each block has a second convolution, whose input is added to its output.
    """
    import keras
    from keras import layers

    def conv(tensor, name, seed):
        settings = {"use_bias": False, "kernel_initializer": keras.initializers.HeNormal(seed)}
        tensor = layers.Conv2D(channels, 3, padding="same", **settings, name=f"{name}_conv")(tensor)
        return layers.BatchNormalization(momentum=0.5, name=f"{name}_bn")(tensor)

    tensor = first = keras.Input((SIZE, SIZE, 3), name="image")
    for block in range(1, blocks + 1):
        tensor = layers.ReLU(name=f"block{block}_relu")(conv(tensor, f"block{block}", block))
        if shortcut:
            added = [tensor, conv(tensor, f"block{block}_second", block + 4)]
            tensor = layers.ReLU(name=f"block{block}_sum")(layers.Add(name=f"block{block}_add")(added))
        tensor = layers.MaxPooling2D(2, name=f"block{block}_pool")(tensor)
    tensor = layers.Flatten(name="flatten")(tensor)
    if dropout:
        tensor = layers.Dropout(0.3, seed=5, name="dropout")(tensor)
    start = keras.initializers.GlorotUniform(3)
    tensor = layers.Dense(classes, "softmax", kernel_initializer=start, name="classes")(tensor)
    return keras.Model(first, tensor, name="tiny")
