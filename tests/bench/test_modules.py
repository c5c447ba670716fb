"""The scripts of bench: none of them import each other in a circle."""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from places import BENCH


def imports() -> Iterator[tuple[str, str]]:
    """Each module with each of those that it imports, also within functions."""
    for path in sorted(Path(BENCH).rglob("*.py")):
        module = ".".join(path.relative_to(BENCH.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((module, other) for name in names for other in (f"{base}{name}", base.rstrip(".")) if other)


def test_no_scripts_import_each_other_in_a_circle() -> None:
    circles = nx.strongly_connected_components(nx.DiGraph(list(imports())))
    assert [sorted(circle) for circle in circles if len(circle) > 1] == []
