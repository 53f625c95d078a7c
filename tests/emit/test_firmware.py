"""The emitted interface, called from C: its errors, and networks that share memory."""

from pathlib import Path

import pytest
from nativebatch import FLAGS, build, execute, prepare

from buildtool.graph.types import OpKind
from buildtool.zoo.drawn import NetBuilder

DRIVER = Path(__file__).with_name("driver.c")


def first_network():
    """A network with two inputs and two outputs."""
    net = NetBuilder(11)
    x, y = net.input((1, 6, 5, 4)), net.input((1, 6, 5, 4))
    z = net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(3, 3), same=True), y)
    return net.graph(
        [net.softmax(net.dense(net.flatten(z), 7)), net.pool(OpKind.MAX_POOL_2D, z, (2, 2), (2, 2))]
    )


def second_network():
    net = NetBuilder(12)
    return net.graph([net.dense(net.flatten(net.conv(net.input((1, 9, 9, 2)), 6, kernel=(3, 3))), 5)])


# Values of nn_status.
OK, ARENA, IMAGE, VERSION, LAYOUT, CRC, NOT_INITIALISED = range(7)


@pytest.fixture(scope="module")
def jobs():
    return [prepare(first_network(), "first"), prepare(second_network(), "second")]


@pytest.fixture(scope="module")
def printed(jobs, tmp_path_factory):
    """The values that the driver prints, by name. It runs under sanitizers."""
    program = build(jobs, tmp_path_factory.mktemp("driver"), FLAGS, DRIVER.read_text())
    return dict(line.split("=") for line in execute(program).splitlines())


STATUSES = {
    OK: "arena_at_16 image_good",
    ARENA: "arena_null arena_short arena_empty arena_misaligned",
    IMAGE: "image_null image_misaligned image_erased image_zero image_magic",
    VERSION: "image_version image_header_bytes sealed_reserved",
    LAYOUT: "image_stranger image_payload_bytes image_layout_first image_layout_last "
    "sealed_size sealed_inputs sealed_outputs",
    CRC: "image_crc_field damaged_reserved",
    NOT_INITIALISED: "invoke_before_init",
}


@pytest.mark.parametrize("status", STATUSES)
def test_init_tells_what_is_wrong(printed, status):
    for name in STATUSES[status].split():
        assert int(printed[name]) == status, name


def test_every_altered_field_of_a_sealed_header_is_refused(printed):
    """Except for the sequence number, which counts updates and may have any value."""
    accepted = {int(name.split("_")[-1]): int(n) for name, n in printed.items() if "accepted_at" in name}
    assert accepted == {place: 36 if place == 28 else 0 for place in range(0, 60, 4)}


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("before_init", {"input_before_init", "output_before_init", "quantization_before_init"}),
        ("flipped_bits", {"flipped_bits_accepted"}),  # in the payload
        ("places", {"places_out_of_range", "places_outside_arena"}),  # inputs and outputs
    ],
)
def test_nothing_else_is_given_or_taken(printed, what, names):
    assert {name for name in printed if what in name} - {"invoke_before_init"} == names
    assert {printed[name] for name in names} == {"0"}


def test_quantisation_in_the_image_equals_the_macros(printed):
    assert [printed[name] for name in printed if name.endswith("_equal")] == ["1"] * 5


def test_the_hook_runs_between_regions(printed, jobs):
    assert int(printed["yields"]) == len(jobs[0].plan.regions) - 1 > 2
    assert printed["yields_of_the_other"] == "0"
    assert printed["yields_without_hook"] == printed["yields"]
