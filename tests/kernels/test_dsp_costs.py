"""The DSP kernels' cost formulas predict what whole networks execute."""

import pytest
from needs import needs_shared

from buildtool.service import handle

BOARD = "cortex-m4"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlperf_vww96", "mlperf_kws", "mlperf_resnet8", "mcunet_vww5", "mobilenetv2_160"]
)
def test_a_network_is_predicted_within_five_percent(name):
    path = needs_shared(f"models/{name}.tflite")
    request = {"model": str(path), "board": BOARD, "options": {"strategy": "layerwise"}}
    answer = handle({"kind": "profile", **request})
    assert answer["exact"]
    assert handle({"kind": "plan", **request})["cost"] == pytest.approx(answer["instructions"], rel=0.05)
