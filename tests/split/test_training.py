"""Trains tiny networks: what decides the result, refusals, and resuming."""

import dataclasses
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import splitnets
from needs import needs_package

from buildtool.base.errors import MachineError, ModelError, UsageError
from buildtool.split import backend, training
from buildtool.split.settings import Settings
from buildtool.split.training import Batches

DATA = splitnets.data()
SETTINGS = Settings(epochs=2, batch=16)


# ---- batches ---------------------------------------------------------------------------------------


def images(epoch, settings=SETTINGS):
    batches = Batches(DATA, settings, epoch)
    return [batches[step] for step in range(len(batches))]


def test_an_epoch_is_a_function_of_seed_and_number():
    for (x, y), (again_x, again_y) in zip(images(3), images(3), strict=True):
        assert np.array_equal(x, again_x)
        assert np.array_equal(y, again_y)
    assert not np.array_equal(images(3)[0][0], images(4)[0][0])
    assert not np.array_equal(images(3)[0][0], images(3, dataclasses.replace(SETTINGS, seed=1))[0][0])
    batches = Batches(DATA, SETTINGS, 3)
    assert np.array_equal(batches[2][0], images(3)[2][0])  # whichever batches were read before


def test_held_out_images_are_never_learnt_and_are_of_every_class():
    plain = dataclasses.replace(SETTINGS, flip=False, shift=0.0, batch=1, normalise="bytes")
    learnt = {x.tobytes() for epoch in range(2) for x, _ in images(epoch, plain)}
    is_held = training.is_held_out(DATA, plain)
    held, labels = DATA.train_x[is_held], DATA.train_y[is_held]
    assert np.bincount(labels).tolist() == [3, 3]
    assert not {one.astype(np.float32).tobytes() for one in held[:, None]} & learnt
    assert len(learnt) == len(DATA.train_x) - 6


def test_images_are_mirrored_and_moved_and_black_comes_in():
    x = np.zeros((200, 8, 8, 1), np.uint8)
    x[:, 3, 2] = 255
    settings = Settings(shift=0.125)
    moved = training.augment(x, settings, np.random.default_rng(0))
    assert (moved.sum(axis=(1, 2, 3)) == 255).all()
    _, rows, columns, _ = np.nonzero(moved)
    assert set(rows) == {2, 3, 4}
    assert set(columns) == {1, 2, 3, 4, 5, 6}
    assert np.array_equal(training.augment(x, Settings(shift=0.0, flip=False), np.random.default_rng(0)), x)


# ---- training --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keras():
    needs_package("keras")
    needs_package("tensorflow")
    return backend.prepare()


@pytest.mark.slow
def test_a_training_learns_and_says_how_far_it_is(keras, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "_SECONDS_BETWEEN", 0.0)
    model, lines = splitnets.network(dropout=True), []
    settings = dataclasses.replace(SETTINGS, epochs=4, flip=False, shift=0.0)
    result = training.train(model, DATA, settings, tmp_path / "kept.npz", lines.append)
    assert result.accuracy == 1.0
    assert result.epochs == 4
    assert training.accuracy(model, DATA.test_x, DATA.test_y, settings) == 1.0
    assert lines[0].startswith("epoch 1 of 4: ") and lines[0].endswith(" right")
    assert lines[1].startswith("epoch 1 of 4: ") and lines[1].endswith(" left")
    assert lines[-1].startswith("epoch 4 of 4: ") and lines[-1].endswith(" 0 s left")
    again, other = splitnets.network(dropout=True), []
    assert training.train(again, DATA, settings, tmp_path / "kept.npz", other.append).accuracy == 1.0
    assert other == []  # the training was already complete
    assert backend.digest(again) == backend.digest(model)
    # A saved network is the same when loaded, and its file has the same bytes.
    backend.save(model, tmp_path / "model.keras")
    loaded = backend.load(tmp_path / "model.keras")
    assert backend.digest(loaded) == backend.digest(model)
    assert backend.pack_model(loaded) == (tmp_path / "model.keras").read_bytes()


@pytest.mark.slow
def test_what_cannot_be_trained_is_refused(keras, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="the data has 2 classes, the network has 3 outputs"):
        training.train(splitnets.network(3), DATA, SETTINGS, tmp_path / "kept.npz")
    model = splitnets.network()
    wild = dataclasses.replace(SETTINGS, epochs=1, rate=1e30, warm_up=0.0)
    with pytest.raises(UsageError, match="the loss is nan after epoch 1: the training does not converge"):
        training.train(model, DATA, wild, tmp_path / "kept.npz")
    assert not (tmp_path / "kept.npz").exists()

    def exhausted(*args, **options):
        raise RuntimeError("RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[16,512,512,512]")

    monkeypatch.setattr(keras.Model, "fit", exhausted)
    with pytest.raises(MachineError, match="batches of 16 images takes more memory than there is") as caught:
        training.train(splitnets.network(), DATA, SETTINGS, tmp_path / "kept.npz")
    assert "batch=8" in str(caught.value)


@pytest.mark.slow
def test_another_network_file_is_refused(keras, tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        backend.load(tmp_path / "model.keras")
    (tmp_path / "model.keras").write_bytes(b"\x89HDF\r\n")
    with pytest.raises(ModelError, match=r"this is not a \.keras file") as caught:
        backend.load(tmp_path / "model.keras")
    assert str(tmp_path / "model.keras") in str(caught.value)
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as other:
        other.writestr("config.json", "{}")
    with pytest.raises(ModelError, match="Keras cannot read this network"):
        backend.load(tmp_path / "model.keras")
    first = keras.Input((8, 8, 3))
    keras.Model(first, keras.layers.Lambda(lambda x: 2 * x)(first)).save(tmp_path / "model.keras")
    with pytest.raises(ModelError, match="a Lambda layer, whose code is not run"):
        backend.load(tmp_path / "model.keras")


def test_a_training_goes_on_from_its_own_state_alone(tmp_path, monkeypatch):
    class Variable:
        value = 0.0

        def assign(self, value):
            self.value = value

    variables = [Variable(), Variable(), Variable()]
    model = SimpleNamespace(variables=variables[:2], optimizer=SimpleNamespace(variables=variables[2:]))
    monkeypatch.setattr(backend, "array", lambda variable: np.array(variable.value))
    path = tmp_path / "kept.npz"
    for index, variable in enumerate(variables):
        variable.assign(1.5 + index)
    training.keep(model, path, "a", 3, 40.5)
    for variable in variables:
        variable.assign(0.0)
    assert training.restore(model, path, "b") == training.restore(model, tmp_path / "none", "a") == (0, 0.0)
    assert variables[0].value == 0.0
    assert training.restore(model, path, "a") == (3, 40.5)
    assert [variable.value for variable in variables] == [1.5, 2.5, 3.5]
