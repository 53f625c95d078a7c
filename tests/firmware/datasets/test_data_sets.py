"""Data sets as inputs: how arrays, images and labels are converted, and which errors there are."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from needs import needs_package

from buildtool.base.errors import UsageError
from buildtool.base.files import File
from buildtool.base.modes import Resize
from buildtool.firmware.datasets.opened import choose_positions, open_data_set, open_for_inputs
from buildtool.graph.types import DType, Graph, OpKind, Tensor
from buildtool.options.parsers import NAMED, normalise
from buildtool.options.values import DataOptions
from buildtool.zoo.drawn import NetBuilder


def network(shape=(1, 4, 6, 3), scale=1 / 255, zero=-128):
    """A network with an input of a shape, and a convolution that reads it."""
    net = NetBuilder(0)
    x = net.input(shape)
    graph = net.graph([net.conv(x, 5)])
    tensor = graph.tensors[graph.inputs[0]]
    quant = type(tensor.quant)((scale,), (zero,))
    tensors = list(graph.tensors)
    tensors[graph.inputs[0]] = type(tensor)(tensor.name, tensor.shape, tensor.dtype, quant)
    return Graph(graph.name, tuple(tensors), graph.ops, graph.inputs, graph.outputs)


def two_inputs():
    net = NetBuilder(0)
    a, b = net.input((1, 2, 2, 3)), net.input((1, 2, 2, 3))
    return net.graph([net.elementwise(OpKind.ADD, a, b)])


def npz(**arrays):
    data = io.BytesIO()
    np.savez(data, **arrays)
    return File("set.npz", data=data.getvalue())


def open_set(graph, file, **more):
    found = file if isinstance(file, File) else File(str(file))
    return open_data_set(DataOptions(found, **more), graph)


def int8(*shape):
    return np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)


# ---- arrays --------------------------------------------------------------------------------------------


def test_quantised_values_are_taken_as_they_are_and_floats_in_steps_of_the_scale():
    graph, values = network(scale=0.03, zero=7), int8(5, 4, 6, 3)
    as_they_are = open_set(graph, npz(x=values, y=np.arange(5)))
    real = open_set(graph, npz(x=((values.astype(np.float64) - 7) * 0.03).astype(np.float32)))
    assert as_they_are.how == ("int8 as they are",)
    assert real.how == ("float32, quantised by scale 0.03 and zero point 7",)
    assert as_they_are.labels == (0, 1, 2, 3, 4) and real.labels == ()
    for i in range(5):
        np.testing.assert_array_equal(as_they_are.read(i)[0], values[i : i + 1])
        np.testing.assert_array_equal(real.read(i)[0], values[i : i + 1])


def test_arrays_go_to_inputs_by_name_or_in_their_order():
    graph = two_inputs()
    first, second = (graph.tensors[t].name for t in graph.inputs)
    a, b = int8(3, 2, 2, 3), int8(3, 2, 2, 3)[::-1]
    for archive in (npz(**{second: b, first: a}), npz(one=a, two=b)):
        arrays = open_set(graph, archive).read(1)
        np.testing.assert_array_equal(arrays, [a[1:2], b[1:2]])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": int8(4, 6, 3)}, "has shape (4, 6, 3); the network takes (N, 4, 6, 3)"),
        ({"x": int8(2, 3, 4, 6)}, "has shape (2, 3, 4, 6)"),
        ({"x": int8(0, 4, 6, 3)}, "has no inputs"),
        ({"x": np.full((2, 4, 6, 3), [1, 2, np.nan], np.float32)}, "input 0 of"),
        ({"x": int8(2, 4, 6, 3).astype(np.int32)}, "are int32"),
        ({"x": int8(2, 4, 6, 3), "z": int8(2, 4, 6, 3)}, "the archive has the arrays 'x', 'z'"),
        ({}, "the archive has the arrays none"),
        ({"x": int8(2, 4, 6, 3), "y": np.arange(3)}, "labels (of shape (3,)) do not match the 2 inputs"),
        ({"x": int8(2, 4, 6, 3), "y": np.eye(2)}, "labels (of shape (2, 2)) do not match"),
        ({"x": int8(2, 4, 6, 3), "y": np.array([0.5, 1])}, "not whole numbers"),
        ({"x": int8(2, 4, 6, 3), "y": np.array([0, -1])}, "label 2 is below 0: -1"),
        ({"x": int8(2, 4, 6, 3), "y": np.array(["cat", "0"])}, "'cat', is not a whole number"),
    ],
)
def test_archives_that_do_not_fit_are_refused(arrays, words):
    with pytest.raises(UsageError) as caught:
        open_set(network(), npz(**arrays))
    assert words in caught.value.text and caught.value.path == "set.npz"


def test_inputs_of_unequal_numbers_are_refused():
    with pytest.raises(UsageError, match=r"3 of .* 2 of "):
        open_set(two_inputs(), npz(a=int8(3, 2, 2, 3), b=int8(2, 2, 2, 3)))


def test_an_archive_with_objects_or_text_is_refused():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("x.npy", b"hello")
    with pytest.raises(UsageError, match=r"the array 'x' is not a \.npy file"):
        open_set(network(), File("set.npz", data=data.getvalue()))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_only_the_inputs_that_are_chosen_are_read(tmp_path, save, order):
    values = np.asarray(int8(50, 4, 6, 3), order=order)
    save(tmp_path / "set.npz", x=values, y=np.arange(50))
    wanted = DataOptions(File(str(tmp_path / "set.npz")))
    data_set = open_data_set(wanted, network(), lambda count: [3, 4, count - 1])
    assert len(data_set.names) == 50 and data_set.labels == tuple(range(50))
    for i in (3, 4, 49):
        np.testing.assert_array_equal(data_set.read(i)[0], values[i : i + 1])
    with pytest.raises(KeyError):
        data_set.read(5)


def test_an_archive_that_unpacks_to_much_takes_the_memory_of_what_is_chosen(tmp_path):
    graph = network((1, 64, 64, 3))
    np.savez_compressed(tmp_path / "set.npz", x=np.zeros((5000, 64, 64, 3), np.int8), y=np.zeros(5000, int))
    wanted = DataOptions(File(str(tmp_path / "set.npz")))
    tracemalloc.start()
    open_data_set(wanted, graph, lambda _: [7, 4000])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20  # of 61 MB


# ---- pixels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "scale", "zero"),
    [
        ("unit", 1 / 255, -128),
        ("signed", 0.00784, -1),
        ("bytes", 1.0, -128),
        ("0.4,0.5,0.6/0.2,0.3,0.4", 0.02, 3),
    ],
)
def test_a_pixel_becomes_its_real_value_in_steps_of_the_scale(rule, scale, zero):
    graph = network((1, 2, 2, 3), scale, zero)
    pixels = np.arange(2 * 12, dtype=np.uint8).reshape(2, 2, 2, 3) * 10
    how = normalise("normalise", rule)
    values = open_set(graph, npz(x=pixels), normalise=how).read(1)[0].reshape(-1)
    if rule in NAMED:  # the rule also follows from the range of the input
        data_set = open_set(graph, npz(x=pixels))
        np.testing.assert_array_equal(data_set.read(1)[0].reshape(-1), values)
        first, last = {"unit": (0, 1), "signed": (-1, 1), "bytes": (0, 255)}[rule]
        assert f"as {first} to {last}" in data_set.how[0]
    for at, pixel in enumerate(pixels[1].reshape(-1).tolist()):
        real = {"unit": pixel / 255, "signed": pixel / 127.5 - 1, "bytes": pixel}.get(rule)
        if real is None:
            real = (pixel / 255 - (0.4, 0.5, 0.6)[at % 3]) / (0.2, 0.3, 0.4)[at % 3]
        assert values[at] == max(-128, min(127, round(real / scale) + zero))


def test_a_range_that_is_not_of_pixels_is_asked_about_and_means_of_other_channels_are_refused():
    black = npz(x=np.zeros((1, 4, 6, 3), np.uint8))
    with pytest.raises(UsageError, match=r"takes values from -12\.8 to 12\.7") as caught:
        open_set(network(scale=0.1, zero=0), black)
    assert caught.value.option == "normalise" and "normalise=signed" in caught.value.hint
    with pytest.raises(UsageError, match="2 means, and the input has 3 channels"):
        open_set(network(), black, normalise=normalise("n", "0,0/1,1"))


# ---- images --------------------------------------------------------------------------------------------


def save(path, pixels, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    needs_package("PIL.Image").fromarray(pixels).save(path, **more)


def test_folders_are_classes_and_files_images_of_the_inputs_channels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8)
    save(tmp_path / "dog" / "b.png", pixels)
    save(tmp_path / "cat" / "a.bmp", pixels[..., 0])
    np.save(tmp_path / "cat" / "c.npy", int8(4, 6, 3))
    (tmp_path / ".DS_Store").write_bytes(b"x")
    data_set = open_set(network(), tmp_path)
    assert data_set.names == ("cat/a.bmp", "cat/c.npy", "dog/b.png")
    assert (data_set.labels, data_set.classes) == ((0, 0, 1), ("cat", "dog"))
    np.testing.assert_array_equal(data_set.read(2)[0][0], (pixels.astype(int) - 128).astype(np.int8))
    grey = np.repeat(pixels[..., :1], 3, axis=2)
    np.testing.assert_array_equal(data_set.read(0)[0][0], (grey.astype(int) - 128).astype(np.int8))
    np.testing.assert_array_equal(data_set.read(1)[0][0], int8(4, 6, 3))
    one_channel = open_set(network((1, 4, 6, 1)), tmp_path / "dog")
    luma = pixels @ np.array([0.299, 0.587, 0.114])
    assert np.abs(one_channel.read(0)[0].reshape(4, 6) - (luma - 128)).max() <= 1
    assert one_channel.labels == () and one_channel.how[0].startswith("images, L of 6 x 4 pixels")


@pytest.mark.parametrize("how", list(Resize))
def test_images_of_another_size_are_cut_padded_stretched_or_refused(tmp_path, how):
    pixels = np.zeros((8, 24, 3), np.uint8)  # twice as high as the input, four times as wide
    pixels[:, :12], pixels[:, 12:] = 100, 200
    save(tmp_path / "x.png", pixels)
    data_set = open_set(network(), tmp_path, resize=how)
    if how is Resize.EXACT:
        with pytest.raises(UsageError, match="24 x 8 pixels, the network takes 6 x 4"):
            data_set.read(0)
        return
    middle = data_set.read(0)[0][0, :, :, 0].astype(int) + 128
    assert set(middle[1, [1, -2]]) == {100, 200}
    assert (middle[0] == 0).all() == (how is Resize.PAD)  # 6 x 2 pixels of the image, between black rows


def test_images_are_turned_as_their_camera_says(tmp_path):
    pixels = np.zeros((6, 4, 3), np.uint8)
    pixels[0] = 255
    image = needs_package("PIL.Image").fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = 6  # to be shown turned clockwise by a quarter
    image.save(tmp_path / "x.png", exif=exif)
    values = open_set(network(), tmp_path).read(0)[0][0, :, :, 0]
    assert (values[:, -1] == 127).all() and (values[:, :-1] == -128).all()


BAD_FOLDERS = {
    "stray": "the folder has files, such as 'note.txt'",
    "deep": "'cat/more' is a folder",
    "hollow": "the class 'dog' is empty",
    "none": "the folder is empty",
}


def test_folders_that_are_no_data_set_are_refused(tmp_path):
    for name in ("stray", "deep", "hollow"):
        save(tmp_path / name / "cat/a.png", np.zeros((4, 6, 3), np.uint8))
    (tmp_path / "stray/note.txt").write_text("x")
    for name in ("deep/cat/more", "hollow/dog", "none"):
        (tmp_path / name).mkdir()
    for name, words in BAD_FOLDERS.items():
        with pytest.raises(UsageError) as caught:
            open_set(network(), tmp_path / name)
        assert words in caught.value.text and caught.value.path == str(tmp_path / name)
    with pytest.raises(UsageError, match="there is no such file"):
        open_set(network(), tmp_path / "missing")
    with pytest.raises(UsageError, match="the network has 2 inputs"):
        open_set(two_inputs(), tmp_path / "stray")
    save(tmp_path / "flat" / "a.png", np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(UsageError, match=r"of shape \(1, 4, 6, 7\) is not an image"):
        open_set(network((1, 4, 6, 7)), tmp_path / "flat")


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n" + b"x" * 40, "cut"])
def test_files_that_are_no_images_are_refused(tmp_path, content):
    save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (60, 60, 3)).astype(np.uint8))
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2] if isinstance(content, str) else content)
    data_set = open_set(network(), tmp_path)
    with pytest.raises(UsageError, match="not an image, or is damaged") as caught:
        data_set.check(0)
        data_set.read(0)  # a file that is cut off fails here
    assert caught.value.path == str(tmp_path / "a.png")


# ---- labels --------------------------------------------------------------------------------------------


@pytest.fixture
def animals(tmp_path):
    for name in ("cat/a.png", "cat/b.png", "dog/a.png"):
        save(tmp_path / "set" / name, np.zeros((4, 6, 3), np.uint8))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("names.txt", "bird\ndog\n\ncat\n", (2, 2, 1)),
        ("of_inputs.csv", "4\n5\n6\n", (4, 5, 6)),
        ("titled.csv", "label\n4\n5\n6\n", (4, 5, 6)),
        ("by_name.csv", "dog/a.png,cat\nfile,7\ncat/a.png,9\ncat/b.png,8\n", (9, 8, 0)),
    ],
)
def test_labels_of_files(animals, name, content, labels):
    (animals / name).write_text(content)
    assert open_set(network(), animals / "set", labels=File(str(animals / name))).labels == labels


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("names.txt", "bird\ncats\ndog\n", "does not name the class 'cat'"),
        ("names.txt", "cat\ndog\ncat\n", "'cat' is named twice"),
        ("a.csv", "1\n2\n", "the labels (2) do not match the 3 inputs"),
        ("a.csv", "1,2,3\n", "neither one column (label) nor two"),
        ("a.csv", "cat/a.png,1\ncat/a.png,2\n", "two rows for 'cat/a.png'"),
        ("a.csv", "cat/a.png,1\n", "2 of 3 inputs have no label, such as 'cat/b.png'"),
        ("a.npy", "no array", "is not a .npy file"),
    ],
)
def test_labels_that_do_not_fit_are_refused(animals, name, content, words):
    (animals / name).write_text(content)
    with pytest.raises(UsageError) as caught:
        open_set(network(), animals / "set", labels=File(str(animals / name)))
    assert words in caught.value.text and caught.value.path == str(animals / name)


def test_labels_of_arrays_and_lists(tmp_path):
    x = npz(x=int8(3, 4, 6, 3), classes=np.array(["cat", "dog", "bird"]))
    np.save(tmp_path / "l.npy", np.array([[2], [1], [0]], np.uint8))
    np.savez(tmp_path / "l.npz", other=np.zeros(7), labels=np.array([2.0, 1.0, 0.0]))
    (tmp_path / "l.txt").write_text("bird\n1\ncat\n")
    for name in ("l.npy", "l.npz", "l.txt"):
        data_set = open_set(network(), x, labels=File(str(tmp_path / name)))
        assert data_set.labels == (2, 1, 0) and data_set.classes == ("cat", "dog", "bird")
    (tmp_path / "l.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text"):
        open_set(network(), x, labels=File(str(tmp_path / "l.txt")))


def test_a_sample_is_of_its_seed_and_in_order():
    assert choose_positions(5, None, 0) == choose_positions(5, 9, 3) == [0, 1, 2, 3, 4]
    sample = choose_positions(1000, 30, 1)
    assert sample == sorted(set(sample)) == choose_positions(1000, 30, 1) and len(sample) == 30
    assert sample != choose_positions(1000, 30, 2)


# ---- float networks ------------------------------------------------------------------------------------


def floats(shape=(1, 4, 6, 3)):
    """The inputs of a float network."""
    return (Tensor("x", shape, DType.FLOAT32),)


def test_a_float_network_gets_floats_as_they_are_and_pixels_by_a_rule():
    real = np.random.default_rng(3).normal(size=(5, 4, 6, 3))
    wide, narrow = (open_for_inputs(DataOptions(npz(x=real.astype(t))), floats()) for t in ("f8", "f4"))
    (array,) = wide.read(2)
    assert array.dtype == np.float32 and np.array_equal(array[0], real[2].astype(np.float32))
    assert np.array_equal(narrow.read(2)[0], array)
    pixels = np.random.default_rng(4).integers(0, 256, (5, 4, 6, 3)).astype(np.uint8)
    signed = open_for_inputs(DataOptions(npz(x=pixels), normalise=NAMED["signed"]), floats())
    np.testing.assert_allclose(signed.read(1)[0][0], pixels[1] / 127.5 - 1, atol=1e-6)
    assert signed.how == ("pixels (uint8) as -1 to 1",)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 4, 6, 3), np.uint8), "takes floats: how are pixels normalised"),
        (np.zeros((5, 4, 6, 3), np.int8), "are int8"),
        (np.full((5, 4, 6, 3), np.inf, np.float32), "not finite"),
    ],
)
def test_what_a_float_network_cannot_take_is_refused(array, words):
    with pytest.raises(UsageError, match=words):
        open_for_inputs(DataOptions(npz(x=array)), floats())
