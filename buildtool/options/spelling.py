"""How the command line spells options; requests and SCons spell them as `errors.in_requests` does."""

from __future__ import annotations

from buildtool.base.errors import Value, in_requests
from buildtool.options import BY_NAME

_OWN = ("depth", "fail_if", "out")  # of commands alone: no request has them


def spelled(option: str, value: Value) -> str:
    """An option with its value as on the command line: --ram 4624."""
    if option not in BY_NAME:
        return in_requests(option, value)
    flag = spelled_name(option)
    if value is None:
        return f"without {flag}"
    return flag if value is True else f"{flag} {value}"


def spelled_name(option: str) -> str:
    """An option's name as on the command line; positional ones have their metavar."""
    if option in _OWN:
        return "--" + option.replace("_", "-")
    if option not in BY_NAME:
        return option
    if option in ("model", "file", "network"):
        return BY_NAME[option].metavar
    return BY_NAME[option].flagged
