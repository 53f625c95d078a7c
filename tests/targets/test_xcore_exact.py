"""Networks on board xcore, on the model of its vector unit: equal to LiteRT's reference to the bit."""

import pytest

from buildtool.api import handle


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ds_cnn", "resnet8"])
def test_a_network_equals_litert(model):
    request = {"kind": "validate", "model": model, "board": "xcore", "inputs": 2, "reference": "litert"}
    answer = handle({**request, "options": {}})
    assert answer["exact"], answer["first_difference"]
