"""Sessions: a value is computed once, the last used values stay, failures are not stored."""

import ast

import pytest
from paths import ROOT

from buildtool.base.session import Session

# types of arguments that a cached function may have
PLAIN = {"str", "int", "float", "bool", "type", "type[Mark]", "Path", "Path | None", "tuple[str, ...]"}


def remembering(path):
    """Yields functions with functools.cache or lru_cache, and the annotations of their arguments."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "cache" in text else ():
        for decorator in getattr(node, "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(called).rpartition(".")[2] in ("cache", "lru_cache"):
                arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                yield node.name, [ast.unparse(a.annotation) if a.annotation else a.arg for a in arguments]


def test_no_function_remembers_what_it_made_of_a_graph_or_a_target(tmp_path):
    """Nor of any other object: a cache that outlives a request has plain values as keys."""
    memo = tmp_path / "memo.py"
    memo.write_text("@functools.lru_cache(maxsize=8)\ndef f(graph: Graph, n: int) -> int: ...\n")
    assert list(remembering(memo)) == [("f", ["Graph", "int"])]
    for path in sorted((ROOT / "buildtool").rglob("*.py")):
        for name, kinds in remembering(path):
            assert set(kinds) <= PLAIN, f"{path.name}: {name} remembers by {kinds}"


def test_a_value_is_made_once_per_kind_and_key():
    session, calls = Session(), []
    for kind, key in (("a", 1), ("a", 1), ("b", 1), ("a", 2)):
        assert session.remember(kind, key, lambda k=(kind, key): calls.append(k) or k) == (kind, key)
    assert calls == [("a", 1), ("b", 1), ("a", 2)]
    with pytest.raises(ZeroDivisionError):
        session.remember("a", 3, lambda: 1 // 0)
    assert session.remember("a", 3, lambda: 5) == 5  # the failure was not stored
