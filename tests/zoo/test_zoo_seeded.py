"""The seeded generator: known answers, ranges, distributions."""

import numpy as np
import pytest

from buildtool.zoo import seeded


def test_splitmix64_gives_the_published_sequence():
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert seeded.splitmix64(1234567, 5).tolist() == published


def test_streams_with_other_names_are_other_numbers():
    assert not np.any(seeded.stream("net/0/a", 100) == seeded.stream("net/0/b", 100))


def test_a_longer_stream_begins_with_the_shorter_one():
    assert np.array_equal(seeded.stream("a", 50)[:20], seeded.stream("a", 20))
    assert np.array_equal(seeded.stream_bytes("a", (50,))[:13], seeded.stream_bytes("a", (13,)))


def test_weights_are_bell_shaped_and_symmetric():
    values = seeded.bell("weights", (64, 3, 3, 100)).astype(float)
    assert values.shape == (64, 3, 3, 100)
    assert -127 <= values.min() < -100 and 100 < values.max() <= 127
    assert abs(values.mean()) < 0.6
    # The sum of four uniform bytes has variance 4 * (256^2 - 1) / 12, here scaled by 127 / 510.
    assert values.std() == pytest.approx((4 * 65535 / 12) ** 0.5 * 127 / 510, rel=0.01)


def test_uniform_numbers_fill_their_interval():
    values = seeded.uniform("u", 10_000, -2.0, 3.0)
    assert -2.0 <= values.min() < -1.99 and 2.99 < values.max() < 3.0
    assert values.mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("shape", [(96, 96, 3), (49, 10, 1), (1, 640, 1), (7, 5, 4)])
def test_pictures_use_the_whole_range(shape):
    image = seeded.picture("p", shape)
    assert image.shape == shape and image.dtype == np.int8
    assert image.min() == -128 and image.max() == 127


def test_pictures_are_smooth_and_noise_is_not():
    def roughness(image):
        values = image.astype(float)
        return np.abs(np.diff(values, axis=0)).mean() / values.std()

    shape = (96, 96, 3)
    assert roughness(seeded.picture("p", shape)) < 0.5 < roughness(seeded.noise("p", shape))
