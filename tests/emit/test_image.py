"""The weight image: its header, its checksum, and the digest of its layout."""

import struct
import zlib

import pytest
from everyop import every_operator

from buildtool.emit import packing
from buildtool.emit.image import HEADER_BYTES, image_layout, read_image, weight_image
from buildtool.graph.rewrite import rewrite
from buildtool.plan.assemble.layerwise import plan
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder

TARGET = load_target("cortex-m4")


def image_of(graph, **options):
    graph = rewrite(graph)
    return weight_image(graph, TARGET.kernels_by_name(plan(graph, TARGET, **options).kernels))


@pytest.mark.slow
def test_the_header_says_what_follows():
    graph = rewrite(every_operator())
    image = weight_image(graph, TARGET.kernels_by_name(plan(graph, TARGET).kernels))
    magic, version, header, payload, crc, inputs, outputs, sequence = struct.unpack_from("<4s7I", image.data)
    assert (magic, version, header, sequence) == (b"NTWI", 2, HEADER_BYTES, 0)
    assert payload == len(image.data) - HEADER_BYTES
    assert payload % 16 == 0
    assert crc == zlib.crc32(image.data[HEADER_BYTES:])
    assert (inputs, outputs) == (len(graph.inputs), len(graph.outputs)) == (2, 14)
    assert image.data[32:48] == image.layout
    assert image.data[48:60] == bytes(12)
    assert image.data[60:64] == zlib.crc32(image.data[:60]).to_bytes(4, "little")


@pytest.mark.slow
def test_the_reader_takes_the_header_that_was_written_and_no_other():
    graph = rewrite(every_operator())
    kernels = TARGET.kernels_by_name(plan(graph, TARGET).kernels)
    image = weight_image(graph, kernels)
    assert read_image(image.data, graph, kernels) == image
    for bit in range(0, 8 * HEADER_BYTES, 3):
        changed = bytearray(image.data)
        changed[bit // 8] ^= 1 << bit % 8
        sealed = changed[:60] + zlib.crc32(changed[:60]).to_bytes(4, "little") + changed[64:]
        for data in (changed, sealed) if bit < 480 else (changed,):
            with pytest.raises(ValueError, match="weight image"):
                read_image(bytes(data), graph, kernels)
    for data in (image.data[:-1], image.data + b"\0", image.data[:-1] + b"\7", b""):
        with pytest.raises(ValueError, match="weight image"):
            read_image(data, graph, kernels)


def test_the_layout_is_known_without_the_weights(monkeypatch):
    """A plan needs only the sizes of constants, so nothing is packed for it."""
    for board in ("cortex-m4", "cortex-m55", "qemu-virt-rv32", "qemu-virt-rv32v", "host"):
        target, graph = load_target(board), rewrite(every_operator())
        kernels = target.kernels_by_name(plan(graph, target).kernels)
        image = weight_image(graph, kernels)
        with monkeypatch.context() as patched:
            patched.setattr(packing, "packings", None)
            layout = image_layout(graph, kernels)
        assert layout.size == len(image.data)
        assert layout == image.places


def test_a_topology_is_told_apart_even_where_every_block_lies_alike():
    """Padding on the other side changes no constant and no size."""

    def padded(top, bottom):
        net = NetBuilder(0)
        x = net.pad(net.input((1, 8, 8, 3)), ((0, 0), (top, bottom), (1, 0), (0, 0)))
        return net.graph([net.conv(x, 4, kernel=(3, 3), stride=(2, 2))])

    one, two = image_of(padded(1, 0)), image_of(padded(0, 1))
    assert one.places.constants == two.places.constants
    assert one.data[HEADER_BYTES:] == two.data[HEADER_BYTES:]
    assert one.layout != two.layout
