"""Methods whose results an instance remembers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def remembered(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method, which makes each result once: the instance keeps them by the arguments, none of which is
    given by name.
    """
    name = f"results of {method.__name__}"

    @wraps(method)
    def known(self: Any, *args: Any) -> T:
        results: dict[tuple[Any, ...], T] = self.__dict__.setdefault(name, {})
        if args not in results:
            results[args] = cast(Callable[..., T], method)(self, *args)
        return results[args]

    return cast(Callable[Concatenate[S, P], T], known)
