"""Names and options of the zoo: accepted values and error messages."""

from fractions import Fraction

import pytest
from zoo_networks import built

from buildtool import zoo
from buildtool.base.errors import UsageError


def test_the_networks_are_named_in_order():
    assert zoo.names() == [
        "autoencoder",
        "densenet",
        "ds_cnn",
        "mbv2_w035_144",
        "mcunet_320k",
        "mcunet_vww5",
        "mobilenetv1_025_96",
        "mobilenetv2",
        "mobilenetv3_small",
        "resnet8",
        "squeezenet",
    ]


def test_every_network_is_described_with_its_options():
    for name in zoo.names():
        lines = zoo.describe(name).splitlines()
        assert lines[0].startswith(f"{name}: ")
        assert [line.strip().split(":")[0] for line in lines[1:]] == [o.name for o in zoo.options(name)]
        assert "seed" in {o.name for o in zoo.options(name)}


def test_options_in_the_name_and_as_keywords_mean_the_same():
    inside = zoo.choose("mobilenetv2:size=96,alpha=0.35,classes=10")
    separate = zoo.choose("mobilenetv2", classes="10", size=96, alpha=0.35)
    assert inside == separate
    assert inside.spelling == "mobilenetv2:size=96,alpha=0.35,classes=10"
    assert inside.slug == "mobilenetv2_size96_alpha0_35_classes10"


def test_options_of_default_value_and_spaces_do_not_change_the_spelling():
    assert zoo.choose("mobilenetv2: size = 160 , alpha=1.0").spelling == "mobilenetv2"
    assert zoo.choose("mobilenetv2:alpha=0.350").spelling == "mobilenetv2:alpha=0.35"


def test_options_reach_the_network():
    graph = built("mobilenetv2:size=32,alpha=0.35,classes=10")
    shapes = {t.name: t.shape for t in graph.tensors}
    assert (shapes["input"], shapes["stem"], shapes["logits"]) == ((1, 32, 32, 3), (1, 16, 16, 16), (1, 10))


def test_an_unknown_name_suggests_the_closest():
    with pytest.raises(UsageError, match=r"no network 'mobilnetv2'.*\n.*did you mean 'mobilenetv2'\?"):
        zoo.build("mobilnetv2:size=96")


def test_an_unknown_option_suggests_the_closest():
    with pytest.raises(UsageError, match=r"has no option 'siz'.*\n.*did you mean 'size'\?"):
        zoo.build("mobilenetv2:siz=96")


def test_a_fixed_network_has_no_size():
    with pytest.raises(UsageError, match="resnet8 has no option 'size'"):
        zoo.build("resnet8", size=64)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("size=31", "size=31 is out of range"),
        ("size=321", "size=321 is out of range"),
        ("alpha=0", "alpha=0 is out of range"),
        ("alpha=2.1", "alpha=2.1 is out of range"),
        ("classes=1", "classes=1 is out of range"),
        ("size=96.5", "size=96.5: expected a whole number"),
        ("size=-96", "size=-96: expected a whole number"),
        ("alpha=1/2", "alpha=1/2: expected a decimal number"),
        ("alpha=nan", "alpha=nan: expected a decimal number"),
        ("seed=9999999999999", "seed=9999999999999: expected a whole number"),
    ],
)
def test_a_bad_value_is_refused_with_the_range(options, text):
    with pytest.raises(UsageError) as caught:
        zoo.choose(f"mobilenetv2:{options}")
    assert text in str(caught.value)
    assert caught.value.hint.startswith(options.split("=")[0] + ":") and "default" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["resnet8:", "resnet8:seed", "resnet8:=1", "resnet8:seed=", "resnet8:seed=1,"]
)
def test_what_is_not_an_option_is_refused(text):
    with pytest.raises(UsageError, match="is not option=value"):
        zoo.choose(text)


def test_an_option_given_twice_is_refused():
    with pytest.raises(UsageError, match="'seed' is given twice"):
        zoo.choose("resnet8:seed=1,seed=2")
    with pytest.raises(UsageError, match="'seed' is given twice, in the name and separately"):
        zoo.choose("resnet8:seed=1", seed=2)


def test_alpha_is_exact():
    assert zoo.choose("mobilenetv2", alpha=0.35).values["alpha"] == Fraction("0.35")
