"""The options, once: the command line, SCons and the reference page are made from this table.

A leaf: the standard library only. Values are parsed here as well, from a request's plain values or from
text, so that every front refuses the same mistakes in the same words. Begin at types.py; nested.py and
keys.py are the table, parsers.py are its values, table.py is what a request may say by it, values.py is what
that becomes. Which kinds of requests take an option is said by these (buildtool/api/requests). Made from it
are the command line (buildtool/fronts/cli, spelling.py) and the reference page (page.py).
"""

from buildtool.options.table import (
    BY_NAME,
    OPTIONS,
    beside_plan,
    from_text,
    parse,
    planning,
    refuse_unknown,
    without_board,
)
from buildtool.options.types import BOARD_SUFFIXES, MODEL_SUFFIXES, NESTED, Group, Option

__all__ = [
    "BOARD_SUFFIXES",
    "BY_NAME",
    "MODEL_SUFFIXES",
    "NESTED",
    "OPTIONS",
    "Group",
    "Option",
    "beside_plan",
    "from_text",
    "parse",
    "planning",
    "refuse_unknown",
    "without_board",
]
