"""Mutants of a source text: each differs from it in one small fault."""

from __future__ import annotations

import ast
import copy
import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_FEWEST_SWAPPED = 2


class Mutant(NamedTuple):
    """One fault in one file.

    Attributes:
        id: A name that stays the same when other lines of the file change.
        file: The file, relative to the package's parent directory.
        function: The qualified name of what it stands in; empty at a module's top.
        line: The first line of its statement.
        executed: Ranges of lines; who executes one of them may notice it. They are those of the
            statement; for a default value, those of the function; for what else runs once, at
            import, those of all functions of the file.
        kind: What kind of fault it is.
        before: The code that was replaced.
        after: What replaces it.
        start: Where that begins, in bytes.
        end: Where it ends.
    """

    id: str
    file: str
    function: str
    line: int
    executed: tuple[range, ...]
    kind: str
    before: str
    after: str
    start: int
    end: int

    def applied_to(self, source: bytes) -> bytes:
        """Return the source with the fault in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file that are Python code.

    Args:
        file: Its name, for the mutants' ids.
        source: What is in it.
    """
    tree = ast.parse(source)
    walk = _Walk(file, source, tree)
    walk.visit(tree)
    return walk.found


class _Walk(ast.NodeVisitor):
    """A walk over a module, which knows where in the text each statement stands."""

    def __init__(self, file: str, source: bytes, tree: ast.Module) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self._line = 1
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        self._executed = tuple(map(_body_of, functions))
        self._is_in_function = False
        self._ids: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._visit_statement(node)
            return
        if isinstance(node, ast.JoinedStr):  # its parts have no places before Python 3.12
            return
        self._mutate(node)
        self.generic_visit(node)

    def _visit_statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        outside = self._line, self._executed
        self._line = node.lineno
        if self._is_in_function:
            self._executed = (_header_of(node),)
        if isinstance(node, ast.FunctionDef):
            self._visit_function(node)
        elif isinstance(node, ast.ClassDef):
            self._visit_named(node.name, node.body)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
        else:
            self._mutate(node)
            self.generic_visit(node)
        self._line, self._executed = outside

    def _visit_function(self, node: ast.FunctionDef) -> None:
        self._executed = (_body_of(node),)
        self._names.append(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self._mutate(default, kind="default value")
        self._names.pop()
        outside, self._is_in_function = self._is_in_function, True
        self._visit_named(node.name, node.body)
        self._is_in_function = outside

    def _visit_named(self, name: str, body: list[ast.stmt]) -> None:
        self._names.append(name)
        for statement in body:
            self.visit(statement)
        self._names.pop()

    def _mutate(self, node: ast.AST, kind: str | None = None) -> None:
        """Note what can be wrong with one node alone."""
        for own_kind, after in _faults(node):
            self._note(node, kind or own_kind, after)

    def _note(self, node: ast.AST, kind: str, after: str) -> None:
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start = self._starts[first - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[last - 1] + node.end_col_offset  # type: ignore[attr-defined]
        before = self._source[start:end].decode()
        function = ".".join(self._names)
        mutant = Mutant(
            self._id(function, kind, before, after), self._file, function, self._line,
            self._executed, kind, before, after, start, end,
        )  # fmt: skip
        try:
            compile(mutant.applied_to(self._source), self._file, "exec", dont_inherit=True)
        except SyntaxError:
            return
        self.found.append(mutant)

    def _id(self, *told: str) -> str:
        """Return a name that is made of what the fault is; equal faults are counted."""
        count = 0
        while True:
            text = "\0".join((self._file, *told, str(count)))
            name = hashlib.sha256(text.encode()).hexdigest()[:10]
            if name not in self._ids:
                self._ids.add(name)
                return name
            count += 1


def _body_of(function: ast.FunctionDef) -> range:
    return range(function.body[0].lineno, (function.end_lineno or 0) + 1)


def _header_of(statement: ast.stmt) -> range:
    """Return the lines of a statement, without those that belong to statements within it."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or 0
    return range(statement.lineno, max(statement.lineno, last) + 1)


def _faults(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the kinds of fault that one node can have, each with the code that has it."""
    for kind, fault in _KINDS.items():
        for faulty in fault(node):
            text = ast.unparse(faulty)
            yield kind, text if isinstance(faulty, ast.stmt) else f"({text})"


def _comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[index] = _COMPARISONS[type(operator)]()
            yield changed


def _boolean_operator(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)


def _negation(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _condition(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _constant(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)


def _function(node: ast.AST) -> Iterator[ast.AST]:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
    ):
        yield ast.Call(ast.Name(_FUNCTIONS[node.func.id]), node.args, node.keywords)


def _swapped_arguments(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call) or len(node.args) < _FEWEST_SWAPPED:
        return
    if isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}:  # in whichever order
        return
    first, second, *others = node.args
    if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
        yield ast.Call(node.func, [second, first, *others], node.keywords)


def _return_value(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None:
        nothing = isinstance(node.value, ast.Constant) and node.value.value is None
        yield ast.Return(ast.Constant(1 if nothing else None))


def _removed_statement(node: ast.AST) -> Iterator[ast.AST]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Yield))
    is_stored = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], (ast.Attribute, ast.Subscript)
    )
    if (
        is_call
        or is_stored
        or isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break))
    ):
        yield ast.Pass()


_KINDS: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    "comparison": _comparison,
    "boolean operator": _boolean_operator,
    "removed not": _negation,
    "condition": _condition,
    "constant": _constant,
    "other function": _function,
    "swapped arguments": _swapped_arguments,
    "return value": _return_value,
    "removed statement": _removed_statement,
}
