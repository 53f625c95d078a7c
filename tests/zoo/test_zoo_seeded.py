"""The seeded generator: known answers, ranges, distributions."""

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


def test_weights_are_bell_shaped_and_symmetric():
    values = seeded.bell("weights", (64, 3, 3, 100)).astype(float)
    assert values.shape == (64, 3, 3, 100)
    assert -127 <= values.min() < -100 and 100 < values.max() <= 127
    assert abs(values.mean()) < 0.6
    # The sum of four uniform bytes has variance 4 * (256^2 - 1) / 12, here scaled by 127 / 510.
    assert values.std() == pytest.approx((4 * 65535 / 12) ** 0.5 * 127 / 510, rel=0.01)
