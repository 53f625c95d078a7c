"""Turns a .tflite file for a batch of images into the file for one image."""

from buildtool.graph.batches import one_image
from buildtool.graph.tflite.flat import MALFORMED, FlatFile
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model


def single_image(data: bytes) -> bytes:
    """Returns the file for one image. It is `data` if the batch is 1, or if images cannot be separated."""
    try:
        file = FlatFile(data)
        shapes = [file.tensor(t).shape for t in file.inputs]
    except MALFORMED:  # reading the network reports it
        return data
    if not shapes or len(shapes[0]) < 2 or shapes[0][0] < 2:
        return data
    graph = one_image(read_model(data))
    return data if graph is None else write_model(graph)
