"""The import statements of a Python file, wherever they stand in it; a file is parsed once a test process."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

Import = ast.Import | ast.ImportFrom


@functools.cache
def import_statements(path: Path) -> tuple[Import, ...]:
    """All of them, also those inside of functions and conditions."""
    return tuple(_below(ast.parse(path.read_text(encoding="utf-8"))))


def _below(node: ast.AST) -> Iterator[Import]:
    """Statements stand in the lists of other statements alone, never in an expression."""
    for value in vars(node).values():
        for child in value if isinstance(value, list) else ():
            if isinstance(child, Import):
                yield child
            elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from _below(child)
