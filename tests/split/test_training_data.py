"""Training data: reading folders, archives and arrays, and refusals."""

import io
import tarfile

import numpy as np
import pytest
from needs import needs_package

from buildtool.base.errors import MachineError, UsageError
from buildtool.split import data as datasets
from buildtool.split.data import Data, check, load


def png(value, size=(6, 4), mode="RGB"):
    """A PNG image with one value; `size` is (width, height)."""
    image = needs_package("PIL.Image").new(mode, size, (value,) * 3 if mode == "RGB" else value)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


PETS = {
    f"{part}/{label}/{number}.png": png(10 * index + number)
    for part in ("train", "test")
    for index, label in enumerate(("cat", "dog"))
    for number in range(3 if part == "train" else 2)
}


def archive(path, files):
    with tarfile.open(path, "w:xz") as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def test_a_folder_with_two_parts_keeps_them(tmp_path):
    data = load(write(tmp_path, PETS))
    assert data.classes == ("cat", "dog")
    assert data.shape == (4, 6, 3)
    assert data.train_x[:, 0, 0, 0].tolist() == [0, 1, 2, 10, 11, 12]
    assert data.train_y.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test_x[:, 0, 0, 0].tolist() == [0, 1, 10, 11]
    assert data.test_y.tolist() == [0, 0, 1, 1]


def test_an_archive_and_a_folder_with_the_same_images_are_the_same_data(tmp_path):
    of_folder = load(write(tmp_path / "images", PETS))
    of_archive = load(archive(tmp_path / "images.tar.xz", PETS))
    for part in ("train", "test"):
        own = {name.removeprefix(f"{part}/"): data for name, data in PETS.items() if name.startswith(part)}
        (tmp_path / "two").mkdir(exist_ok=True)
        archive(tmp_path / "two" / f"pets_{part}.tar.xz", own)
    assert of_folder.digest() == of_archive.digest() == load(tmp_path / "two").digest()


def test_without_parts_a_share_of_every_class_is_the_test(tmp_path):
    files = {
        f"{label}/{number}.png": png(100 * index + number)
        for index, label in enumerate("ab")
        for number in range(12)
    }
    write(tmp_path, files)
    data, again, other = load(tmp_path), load(tmp_path), load(tmp_path, seed=1)
    assert np.bincount(data.test_y).tolist() == [2, 2]
    assert np.bincount(data.train_y).tolist() == [10, 10]
    values = {*data.train_x[:, 0, 0, 0].tolist(), *data.test_x[:, 0, 0, 0].tolist()}
    assert values == {*range(12), *range(100, 112)}
    assert data.digest() == again.digest() != other.digest()


def test_decoded_images_are_kept_until_a_file_changes(tmp_path, monkeypatch):
    images, cache = tmp_path / "images", tmp_path / "cache"
    write(images, PETS)
    first = load(images, cache=cache)
    decoded: list[str] = []
    plain = datasets._decode
    monkeypatch.setattr(datasets, "_decode", lambda *args: (decoded.append(args[2]), plain(*args))[1])
    assert load(images, cache=cache).digest() == first.digest()
    assert not decoded
    (images / "train/cat/0.png").write_bytes(png(77))
    assert load(images, cache=cache).digest() != first.digest()
    assert len(decoded) == len(PETS)


def test_arrays_with_parts_and_without(tmp_path):
    x = np.arange(20 * 4 * 4, dtype=np.uint8).reshape(20, 4, 4)
    y = np.arange(20) % 2
    np.savez(tmp_path / "whole.npz", x=x, y=y, classes=np.array(["even", "odd"]))
    data = load(tmp_path / "whole.npz")
    assert data.classes == ("even", "odd")
    assert data.shape == (4, 4, 1)
    assert np.bincount(data.test_y).tolist() == [2, 2]
    np.savez(tmp_path / "parts.npz", x_train=x[:12], y_train=y[:12, None], x_test=x[12:], y_test=y[12:])
    data = load(tmp_path / "parts.npz")
    assert (len(data.train_x), len(data.test_x), data.classes) == (12, 8, ("0", "1"))


X, Y = np.zeros((4, 2, 2, 3), np.uint8), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"x": X, "labels": Y}, "the file has the arrays: x, labels"),
        ({"x": X / 255, "y": Y}, "the images are float64"),
        ({"x": X, "y": Y, "classes": np.array(["a", None])}, "it contains objects instead of numbers"),
        ({"x": X, "y": Y[:3]}, "4 images have labels of shape (3,)"),
        ({"x": X, "y": Y - 1}, "the label -1 is below 0"),
        ({"x": X, "y": Y * 2}, "class 1 ('1') has no image to train with"),
        ({"x": X, "y": Y, "classes": np.array(["one"])}, "a label is 1, but there are 1 names"),
        ({"x": X[:0], "y": Y[:0]}, "there is no image"),
        ({"x": X.reshape(4, 12), "y": Y}, "the images have the shape (4, 12)"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :1], "y_test": Y}, "training images are (2, 2, 3)"),
    ],
)
def test_arrays_that_are_no_data_set_are_refused(tmp_path, arrays, text):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "data.npz")
    assert text in str(caught.value)
    assert str(tmp_path / "data.npz") in str(caught.value)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.csv").write_text("1,2")
    (tmp_path / "data.npz").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "empty").mkdir()
    whole = archive(tmp_path / "x.tar.xz", {"a/0.png": png(1)}).read_bytes()
    (tmp_path / "cut.tar.xz").write_bytes(whole[:60])
    for name, text in {
        "nothing": "no such file or folder",
        "text.csv": "the file is not a data set",
        "data.npz": r"not a \.npz file, or it is damaged",
        "empty": "there is no image",
        "cut.tar.xz": "the archive cannot be read",
    }.items():
        with pytest.raises(UsageError, match=text):
            load(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"train/dog/9.png": png(1)[:40]},
            "train/dog/9.png: error: the file is not an image, or it is damaged",
        ),
        ({"train/dog/9.png": png(1, (5, 5))}, "train/dog/9.png: error: the image is 5 x 5"),
        ({"train/dog/9.txt": b"notes"}, "train/dog/9.txt: error: the file is not an image"),
        ({"lost.png": png(1)}, "lost.png: error: the image is not in the folder of a class"),
        ({"test/cow/0.png": png(1)}, "the class 'cow' has no image to train with"),
        ({"train/cow/0.png": png(1)}, "the class 'cow' has no image to test with"),
    ],
)
def test_a_folder_that_is_no_data_set_is_refused(tmp_path, change, text):
    write(tmp_path, PETS | change)
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert text in str(caught.value)


def test_images_beyond_the_memory_are_refused(tmp_path, monkeypatch):
    write(tmp_path, PETS)
    monkeypatch.setattr(datasets, "_free_bytes", lambda: 300.0)
    with pytest.raises(MachineError, match=r"the images need .* GB of memory or more"):
        load(tmp_path)


def test_a_network_must_fit_the_data():
    data, one = Data(X, Y, X, Y, ("a", "b")), Data(X, 0 * Y, X, 0 * Y, ("a",))
    check(data, (None, 2, 2, 3), (None, 2))
    check(data, (None, None, None, 3), (None, 2))
    for given, inputs, outputs, text in (
        (one, (None, 2, 2, 3), (None, 1), "all images are of one class, 'a'"),
        (data, (None, 2, 2, 3), (None, 10), "the data has 2 classes, the network has 10 outputs"),
        (data, (None, 2, 2, 1), (None, 2), "the images are 2 x 2 x 3, the network takes 2 x 2 x 1"),
        (data, (None, 2, 2, 3), (None, 2, 2, 2), "a value for each class is needed"),
    ):
        with pytest.raises(UsageError, match=text):
            check(given, inputs, outputs)
