"""Names and options of the zoo: accepted values and error messages."""

import pytest

from buildtool import zoo
from buildtool.base.errors import UsageError


def test_options_in_the_name_and_as_keywords_mean_the_same():
    inside = zoo.choose("mobilenetv2:size=96,alpha=0.35,classes=10")
    separate = zoo.choose("mobilenetv2", classes="10", size=96, alpha=0.35)
    assert inside == separate
    assert inside.spelling == "mobilenetv2:size=96,alpha=0.35,classes=10"
    assert inside.slug == "mobilenetv2_size96_alpha0_35_classes10"


def test_an_unknown_name_suggests_the_closest():
    with pytest.raises(UsageError, match=r"no network 'mobilnetv2'.*\n.*did you mean 'mobilenetv2'\?"):
        zoo.build("mobilnetv2:size=96")


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
