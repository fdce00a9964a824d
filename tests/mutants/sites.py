"""Where a mutant may be made: each error code that the product answers, each comparison that decides, each effect."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[2]
ANSWERING = (
    "broker/handlers",
    "broker/coordination",
    "broker/request",
    "broker/partitions",
    "storage/log",
    "storage/producers",
)
"""Folders whose error codes reach clients."""
DECIDING = ("broker/coordination", "storage")
"""Folders whose comparisons and effects are sampled."""
OTHER, ANOTHER = "RESOURCE_NOT_FOUND", "DUPLICATE_RESOURCE"
"""The code that takes the place of another one; the second one where the first one was."""
NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
CODES, COMPARISONS, EFFECTS = "codes", "comparisons", "effects"


@dataclass(frozen=True, order=True, slots=True)
class Site:
    """An expression of a file, by the order in which the tree is walked; ``text`` is its line."""

    path: str
    index: int
    line: int
    was: str
    becomes: str
    text: str
    at_import: bool
    """Whether it is evaluated when the module is imported, not when a function is called."""

    @property
    def name(self) -> str:
        """Without numbers that change with every edit."""
        return f"{self.path} {self.was} -> {self.becomes} | {self.text}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.was} -> {self.becomes}"


@dataclass
class _Replacement:
    """An expression, and what it becomes."""

    node: ast.expr
    becomes: ast.expr


def _codes(tree: ast.AST) -> Iterator[_Replacement]:
    """Error codes that are not compared with, are no pattern, and are not NONE."""
    compared = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.MatchValue | ast.MatchOr)
        for each in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or id(node) in compared:
            continue
        if node.value.id == "ErrorCode" and node.attr != "NONE":
            other = ANOTHER if node.attr == OTHER else OTHER
            yield _Replacement(node, ast.Attribute(node.value, other, ast.Load()))


def _comparisons(tree: ast.AST) -> Iterator[_Replacement]:
    """Less than becomes at most, and the other way round."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in NEIGHBOURS:
            ops = [NEIGHBOURS[type(node.ops[0])](), *node.ops[1:]]
            yield _Replacement(node, ast.Compare(node.left, ops, node.comparators))


def _effects(tree: ast.AST) -> Iterator[_Replacement]:
    """Calls whose result is not used are left out, but for those of a logger."""
    for node in ast.walk(tree):
        called = node.value if isinstance(node, ast.Expr) else None
        call = called.value if isinstance(called, ast.Await) else called
        if called is not None and isinstance(call, ast.Call) and not ast.unparse(call.func).startswith("logger."):
            yield _Replacement(called, ast.Constant(None))


FINDERS = {CODES: _codes, COMPARISONS: _comparisons, EFFECTS: _effects}


def sites(kind: str) -> list[Site]:
    """All sites of a kind, in the order of files and lines."""
    all_sites = []
    for folder in ANSWERING if kind == CODES else DECIDING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            tree = ast.parse(text)
            called = set(_inside_functions(tree))
            for index, each in enumerate(FINDERS[kind](tree)):
                was, becomes = ast.unparse(each.node), ast.unparse(each.becomes)
                line = each.node.lineno
                at_import = id(each.node) not in called
                name = str(path.relative_to(ROOT))
                all_sites.append(Site(name, index, line, was, becomes, lines[line - 1].strip(), at_import))
    return all_sites


def _inside_functions(tree: ast.AST) -> Iterator[int]:
    """The nodes of bodies of functions, by identity."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for statement in [node.body] if isinstance(node, ast.Lambda) else node.body:
                yield from map(id, ast.walk(statement))


class _Replaced(ast.NodeTransformer):
    def __init__(self, nodes: dict[int, ast.expr]) -> None:
        self._nodes = nodes

    def visit(self, node: ast.AST) -> ast.AST:
        new = self._nodes.get(id(node))
        self.generic_visit(node)
        return node if new is None else ast.fix_missing_locations(ast.copy_location(new, node))


def mutated(kind: str, path: str, index: int) -> ast.Module:
    """A file with one site changed."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    replacement = list(FINDERS[kind](tree))[index]
    return cast("ast.Module", _Replaced({id(replacement.node): replacement.becomes}).visit(tree))


def _values(node: ast.expr) -> list[ast.expr]:
    """The arguments of a site's call: a chain of comparisons is one value."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, node.comparators[0], ast.Constant(type(node.ops[0]).__name__)]
    return [node]


def counted(kind: str, path: str, call: str) -> ast.Module:
    """A file in which each site calls the builtin ``call`` with its index and its value, and is that value.

    Of a comparison the values are both sides and the operator's name: its mutant differs only where they are equal.

    So does each function when it is entered, without an index: this finds the tests of tables at the top level.
    """
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    new: dict[int, ast.expr] = {
        id(each.node): ast.Call(ast.Name(call, ast.Load()), [ast.Constant(f"{path}:{index}"), *_values(each.node)], [])
        for index, each in enumerate(FINDERS[kind](tree))
    }
    changed = cast("ast.Module", _Replaced(new).visit(tree))
    for node in ast.walk(changed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            entered = ast.Expr(ast.Call(ast.Name(call, ast.Load()), [ast.Constant(f"{path}:"), ast.Constant(None)], []))
            after = 0 if ast.get_docstring(node) is None else 1
            node.body.insert(after, ast.fix_missing_locations(ast.copy_location(entered, node.body[0])))
    return changed
