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


def network(classes=2, channels=4, dropout=False):
    """Returns two blocks of a convolution and batch normalisation (momentum 0.5), and a dense layer."""
    import keras
    from keras import layers

    tensor = first = keras.Input((SIZE, SIZE, 3), name="image")
    for block in (1, 2):
        start = keras.initializers.HeNormal(block)
        tensor = layers.Conv2D(
            channels, 3, padding="same", use_bias=False, kernel_initializer=start, name=f"block{block}_conv"
        )(tensor)
        tensor = layers.BatchNormalization(momentum=0.5, name=f"block{block}_bn")(tensor)
        tensor = layers.ReLU(name=f"block{block}_relu")(tensor)
        tensor = layers.MaxPooling2D(2, name=f"block{block}_pool")(tensor)
    tensor = layers.Flatten(name="flatten")(tensor)
    if dropout:
        tensor = layers.Dropout(0.3, seed=5, name="dropout")(tensor)
    start = keras.initializers.GlorotUniform(3)
    tensor = layers.Dense(classes, "softmax", kernel_initializer=start, name="classes")(tensor)
    return keras.Model(first, tensor, name="tiny")
