"""The DSP kernels' cost formulas predict what whole networks execute."""

import pytest
from needs import needs_shared

from buildtool.graph.types import ALIAS_KINDS
from buildtool.service import handle
from buildtool.service.pipeline.models import load_model, read_graph
from buildtool.target.catalogue import cost, select
from buildtool.target.registry import load_target

BOARD = "cortex-m4"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlperf_vww96", "mlperf_kws", "mlperf_resnet8", "mcunet_vww5", "mobilenetv2_160"]
)
def test_a_network_is_predicted_within_five_percent(name):
    path = needs_shared(f"models/{name}.tflite")
    target = load_target(BOARD)
    _, graph = read_graph(load_model(str(path)))
    predicted = sum(
        cost(select(target, graph, op), graph, op) for op in graph.ops if op.kind not in ALIAS_KINDS
    )
    request = {"kind": "profile", "model": str(path), "board": BOARD, "options": {"strategy": "layerwise"}}
    answer = handle(request)
    assert answer["exact"]
    assert predicted == pytest.approx(answer["instructions"], rel=0.05)
