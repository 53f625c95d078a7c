"""The operator at the end of SSD networks: it decodes boxes and suppresses those that overlap better ones."""

from buildtool.graph.ops.types import NO_INT16, CallForm, OpDef, Spelling
from buildtool.graph.types import OpKind

CUSTOM = "TFLite_Detection_PostProcess"  # the name of a custom operator that LiteRT itself has

DEFS = (
    OpDef(
        OpKind.DETECTION_POSTPROCESS,
        None,
        "detection:postprocess",
        also=(Spelling(CUSTOM, "detection:decode"),),
        written="detection:write",
        whole="detection:check",
        call=CallForm.DETECTIONS,
        case="detections",
        operands=3,
        results=4,
        no_int16=NO_INT16,
    ),
)
