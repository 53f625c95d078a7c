"""Memory figures of ONNX and Darknet files of any element type, for which there is no firmware."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from buildtool.base.layers import short_names
from buildtool.graph.flow import fuse
from buildtool.plan.models import read_model_file
from buildtool.plan.others.footprint import footprint

if TYPE_CHECKING:
    from buildtool.api.requests.kinds import AnalyzeNetwork
    from buildtool.base.session import Session
    from buildtool.graph.flow import Flow
    from buildtool.options.values import NetworkOptions
    from buildtool.schema.analysis import NetworkAnswer


def network_analysis(request: AnalyzeNetwork, _session: Session) -> NetworkAnswer:
    """Returns the answer to an `analyze` request about an ONNX or Darknet file."""
    file, options = request.model, request.options
    flow = _read_flow(read_model_file(file), file.path, options)
    if options.operators == "fused":
        flow = fuse(flow)
    flow, figures = footprint(flow, weights=options.weights, order=options.order)
    at = flow.ops[figures.fullest]
    order = figures.order
    return {
        "model": file.stem,
        "operators": len(flow.ops),
        "kinds": dict(sorted(Counter(op.kind for op in flow.ops).items())),
        "inputs": [{"name": flow.values[v].name, "bytes": flow.values[v].size} for v in flow.inputs],
        "outputs": [{"name": flow.values[v].name, "bytes": flow.values[v].size} for v in flow.outputs],
        "batch": options.batch,
        "weights": options.weights,
        "counted_operators": options.operators,
        "order": options.order,
        "order_status": order.status if order else None,
        "activation_bytes": figures.activations,
        "weight_bytes": figures.weights,
        "total_bytes": figures.total,
        "live_bound_bytes": figures.bound,
        "live_bound_operator": f"#{at.position} {at.kind} {at.name}",
        "live_bound_layer": short_names([op.name for op in flow.ops])[figures.fullest],
        "planned_bytes": figures.planned,
        "ratio": figures.bound / figures.total if figures.total else 1.0,
    }


def _read_flow(data: bytes, spec: str, options: NetworkOptions) -> Flow:
    if spec.lower().endswith(".onnx"):
        from buildtool.graph.onnx.flow import read_onnx

        return read_onnx(data, path=spec, batch=options.batch or None, size=options.size)
    from buildtool.graph.darknet import read_cfg

    return read_cfg(data, path=spec, batch=options.batch or 1, size=options.size)
