"""The data that a page of `buildtool report` has inside."""

from __future__ import annotations

import re

DATA_ID = "buildtool-report"  # of the element that has it
_BEGIN = re.compile(rb'<script type="application/json" id="' + DATA_ID.encode() + rb'">')
_END = b"</script>"


def data_of(file: bytes) -> bytes:
    """The JSON of a report's page; a file that is no such page as it is.

    The data itself has no character that HTML looks for, so that the first end is its end.
    """
    begin = _BEGIN.search(file)
    if begin is None:
        return file
    end = file.find(_END, begin.end())
    return file[begin.end() : end] if end >= 0 else file
