"""The import statements of a Python file. Each process parses a file once."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

Import = ast.Import | ast.ImportFrom


@functools.cache
def import_statements(path: Path) -> tuple[Import, ...]:
    """Returns all import statements, also those in functions and conditions."""
    return tuple(_walk(ast.parse(path.read_text(encoding="utf-8"))))


def _walk(node: ast.AST) -> Iterator[Import]:
    """Yields the import statements below a node. Expressions contain no statements."""
    for value in vars(node).values():
        for child in value if isinstance(value, list) else ():
            if isinstance(child, Import):
                yield child
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _walk(child)
