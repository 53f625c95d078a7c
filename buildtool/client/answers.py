"""The types of the answers that build systems read; imported by type checkers, not by builds that run."""

from buildtool.schema.builds import (
    DescribeAnswer,
    EmitAnswer,
    NetworkFiles,
    Place,
    Script,
    Slot,
    Source,
    SourceGroup,
    Tools,
)

__all__ = [
    "DescribeAnswer",
    "EmitAnswer",
    "NetworkFiles",
    "Place",
    "Script",
    "Slot",
    "Source",
    "SourceGroup",
    "Tools",
]
