"""The DSP kernels' cost formulas predict what whole networks execute."""

from pathlib import Path

import pytest

from buildtool.service import handle

MODELS = Path(__file__).resolve().parents[2] / ".." / "shared" / "models"
BOARD = "cortex-m4"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlperf_vww96", "mlperf_kws", "mlperf_resnet8", "mcunet_vww5", "mobilenetv2_160"]
)
def test_a_network_is_predicted_within_five_percent(name):
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"../shared/models/{name}.tflite is not there")
    request = {"model": str(path), "board": BOARD, "options": {"strategy": "layerwise"}}
    answer = handle({"kind": "profile", **request})
    assert answer["exact"]
    assert handle({"kind": "plan", **request})["cost"] == pytest.approx(answer["instructions"], rel=0.05)
