"""Which answer each kind of request has."""

from __future__ import annotations

from buildtool.schema.analysis import AnalysisAnswer, NetworkAnswer
from buildtool.schema.boards import BoardsAnswer, OpsAnswer, ZooAnswer, ZooFile
from buildtool.schema.builds import (
    ArenaAnswer,
    BuildAnswer,
    BundleAnswer,
    DescribeAnswer,
    EmitAnswer,
    SizesAnswer,
    TflmAnswer,
)
from buildtool.schema.checks import CheckAnswer
from buildtool.schema.datasets import DatasetAnswer
from buildtool.schema.fronts import FrontAnswer
from buildtool.schema.plans import PlanAnswer, TraceAnswer
from buildtool.schema.reports import ReportAnswer
from buildtool.schema.runs import DebugAnswer, FlashAnswer, ProfileAnswer, ValidationAnswer
from buildtool.schema.splits import SplitAnswer

# Where there are two: `analyze` for boards, and for a file that is counted without one; `validate` on single
# inputs, and on a data set; `zoo` without a model, and with one.
ANSWERS: dict[str, tuple[type, ...]] = {
    "analyze": (AnalysisAnswer, NetworkAnswer),
    "plan": (PlanAnswer,),
    "trace": (TraceAnswer,),
    "front": (FrontAnswer,),
    "report": (ReportAnswer,),
    "describe": (DescribeAnswer,),
    "emit": (EmitAnswer,),
    "build": (BuildAnswer,),
    "bundle": (BundleAnswer,),
    "sizes": (SizesAnswer,),
    "validate": (ValidationAnswer, DatasetAnswer),
    "profile": (ProfileAnswer,),
    "debug": (DebugAnswer,),
    "flash": (FlashAnswer,),
    "ops": (OpsAnswer,),
    "boards": (BoardsAnswer,),
    "target": (CheckAnswer,),
    "zoo": (ZooAnswer, ZooFile),
    "arena": (ArenaAnswer,),
    "tflm": (TflmAnswer,),
    "split": (SplitAnswer,),
}
