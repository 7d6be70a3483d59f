"""Dimensions: an int, or an expression over bounded symbols.

A symbolic dimension is kept in one normal form (a sum of integer multiples of products of atoms), so two dimensions
are equal exactly when their normal forms are. An atom is a `Symbol` or a `Function` that cannot be simplified.
Invariant: no arithmetic here ever returns a `Symbolic` that is a plain integer; callers can test `isinstance(d, int)`.

The same expressions serve as values of shape tensors, as addresses and as loop bounds.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Symbol:
    """A size that is known only at run time, within bounds (inclusive)."""

    name: str
    low: int
    high: int

    def bounds(self) -> tuple[int, int]:
        return self.low, self.high

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values[self.name]

    def symbols(self) -> set[Symbol]:
        return {self}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Function:
    """floordiv, mod, min or max of dimensions that could not be computed yet."""

    name: str
    args: tuple[int | Symbolic, ...]

    def bounds(self) -> tuple[int, int]:
        lows, highs = zip(*(bounds(arg) for arg in self.args), strict=True)
        if self.name == "min":
            return min(lows), min(highs)
        if self.name == "max":
            return max(lows), max(highs)
        divisor_low, divisor_high = lows[1], highs[1]
        if divisor_low <= 0:
            return -max(abs(lows[0]), abs(highs[0])), max(abs(lows[0]), abs(highs[0]))
        if self.name == "mod":
            return 0, divisor_high - 1
        corners = [n // d for n in (lows[0], highs[0]) for d in (divisor_low, divisor_high)]
        return min(corners), max(corners)

    def evaluate(self, values: Mapping[str, int]) -> int:
        return int(_FUNCTIONS[self.name](*(evaluate(arg, values) for arg in self.args)))

    def symbols(self) -> set[Symbol]:
        return set().union(*(symbols(arg) for arg in self.args))

    def __str__(self) -> str:
        infix = {"floordiv": "//", "mod": "%"}.get(self.name)
        if infix:
            return f"({self.args[0]}) {infix} ({self.args[1]})"
        return f"{self.name}({', '.join(str(arg) for arg in self.args)})"


Atom = Symbol | Function
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Symbolic:
    """constant + sum of coefficient * product of atoms; terms sorted by their text."""

    terms: tuple[tuple[tuple[Atom, ...], int], ...]
    constant: int = 0

    def __add__(self, other: int | Symbolic) -> int | Symbolic:
        return _sum([(self, 1), (other, 1)]) if isinstance(other, int | Symbolic) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int | Symbolic) -> int | Symbolic:
        return _sum([(self, 1), (other, -1)]) if isinstance(other, int | Symbolic) else NotImplemented

    def __rsub__(self, other: int | Symbolic) -> int | Symbolic:
        return _sum([(self, -1), (other, 1)])

    def __neg__(self) -> int | Symbolic:
        return _sum([(self, -1)])

    def __mul__(self, other: int | Symbolic) -> int | Symbolic:
        if isinstance(other, int):
            return _sum([(self, other)])
        if not isinstance(other, Symbolic):
            return NotImplemented
        return _collect((left + right, a * b) for left, a in _items(self) for right, b in _items(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Symbolic) -> int | Symbolic:
        if isinstance(other, int) and other > 0:
            # Whole multiples of the divisor leave the division, of the constant too; the rest stays inside.
            inside = [(atoms, c) for atoms, c in self.terms if c % other]
            outside = _collect((atoms, c // other) for atoms, c in self.terms if c % other == 0)
            outside, rest = outside + self.constant // other, self.constant % other
            if not inside:
                return outside
            match inside:
                case [((Function(name="floordiv", args=(within, int(divisor))),), 1)] if divisor > 0:
                    return outside + (within + rest * divisor) // (divisor * other)
            return outside + _atom(Function("floordiv", (_collect([*inside, ((), rest)]), other)))
        return 1 if self == other else _atom(Function("floordiv", (self, other)))

    def __rfloordiv__(self, other: int) -> int | Symbolic:
        return _atom(Function("floordiv", (other, self)))

    def __rmod__(self, other: int) -> int | Symbolic:
        return _atom(Function("mod", (other, self)))

    def __mod__(self, other: int | Symbolic) -> int | Symbolic:
        if isinstance(other, int) and all(c % other == 0 for _, c in _items(self)):
            return 0
        return 0 if self == other else _atom(Function("mod", (self, other)))

    def __str__(self) -> str:
        parts = []
        for atoms, c in self.terms:
            text = "*".join(str(a) if isinstance(a, Symbol) else f"({a})" for a in atoms)
            parts.append(text if c == 1 else f"{c}*{text}")
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Dim = int | Symbolic


def _items(dim: int | Symbolic) -> list[tuple[tuple[Atom, ...], int]]:
    if isinstance(dim, int):
        return [((), dim)]
    return [*dim.terms, ((), dim.constant)] if dim.constant else list(dim.terms)


def _collect(items: Iterable[tuple[tuple[Atom, ...], int]]) -> int | Symbolic:
    total: dict[tuple[Atom, ...], int] = {}
    for atoms, coefficient in items:
        key = tuple(sorted(atoms, key=str))
        total[key] = total.get(key, 0) + coefficient
    constant = total.pop((), 0)
    terms = tuple(sorted(((k, c) for k, c in total.items() if c), key=lambda term: str(term[0])))
    return Symbolic(terms, constant) if terms else constant


def _sum(parts: Iterable[tuple[int | Symbolic, int]]) -> int | Symbolic:
    return _collect((atoms, c * factor) for dim, factor in parts for atoms, c in _items(dim))


def _atom(atom: Atom) -> int | Symbolic:
    low, high = atom.bounds()
    return low if low == high else Symbolic((((atom,), 1),))


def symbol(name: str, low: int, high: int) -> int | Symbolic:
    """A bounded symbol as a dimension; just the number when both bounds are the same."""
    return _atom(Symbol(name, low, high))


def minimum(a: int | Symbolic, b: int | Symbolic) -> int | Symbolic:
    return _choose("min", a, b)


def maximum(a: int | Symbolic, b: int | Symbolic) -> int | Symbolic:
    return _choose("max", a, b)


def _choose(name: str, a: int | Symbolic, b: int | Symbolic) -> int | Symbolic:
    if name == "max":
        below, above = a, b
    else:
        below, above = b, a
    low, high = bounds(above - below)
    if low >= 0:  # above is never less than below
        return above if name == "max" else below
    if high <= 0:
        return below if name == "max" else above
    return _atom(Function(name, tuple(sorted((a, b), key=str))))


def product(dims: Iterable[int | Symbolic]) -> int | Symbolic:
    result: int | Symbolic = 1
    for dim in dims:
        result = result * dim
    return result


def ceil_div(a: int | Symbolic, b: int) -> int | Symbolic:
    return (a + (b - 1)) // b


def bounds(dim: int | Symbolic) -> tuple[int, int]:
    """Lowest and highest value (inclusive; may be wider than what can be reached)."""
    if isinstance(dim, int):
        return dim, dim
    low, high = _bounds_of_terms(dim)
    if len(dim.terms) == 1:
        return low, high
    without = _without_divisions(dim)
    if without is None:
        return low, high
    scaled, slack_low, slack_high, factor = without
    least, most = bounds(scaled)
    return max(low, -(-(least + slack_low) // factor)), min(high, (most + slack_high) // factor)


def _without_divisions(dim: Symbolic) -> tuple[int | Symbolic, int, int, int] | None:
    """A dimension, a lowest and a highest rest, and a factor: the dimension plus the rest is `dim` times the factor.

    A division is what is divided minus the remainder, which lies below the divisor. So `(n + 3) // 4 - n // 4` is seen
    to be 0 or 1, although both terms vary with n.
    """
    divided = {atoms: found for atoms, _ in dim.terms if (found := _division(atoms)) is not None}
    if not divided:
        return None
    factor = math.lcm(*(divisor for _, divisor in divided.values()))
    parts: list[tuple[int | Symbolic, int]] = [(dim.constant, factor)]
    low = high = 0
    for atoms, coefficient in dim.terms:
        if atoms not in divided:
            parts.append((Symbolic(((atoms, 1),)), coefficient * factor))
            continue
        inside, divisor = divided[atoms]
        each = coefficient * (factor // divisor)
        parts.append((inside, each))
        low += min(0, -each * (divisor - 1))
        high += max(0, -each * (divisor - 1))
    return _sum(parts), low, high, factor


def _division(atoms: tuple[Atom, ...]) -> tuple[int | Symbolic, int] | None:
    """What is divided and by which number, where a term is that and nothing else."""
    match atoms:
        case (Function(name="floordiv", args=(inside, int(divisor))),) if divisor > 0:
            return inside, divisor
    return None


def _bounds_of_terms(dim: Symbolic) -> tuple[int, int]:
    """What follows from the bounds of each term by itself."""
    low = high = dim.constant
    for atoms, coefficient in dim.terms:
        ends = [coefficient, coefficient]
        for atom in atoms:
            corners = [e * b for e in ends for b in atom.bounds()]
            ends = [min(corners), max(corners)]
        low += min(ends)
        high += max(ends)
    return low, high


def has_dependent_terms(dim: int | Symbolic) -> bool:
    """May its bounds be wider than what can be reached? n * n - n has one symbol, and its terms move together."""
    return not isinstance(dim, int) and (len(dim.terms) > 1 or len(symbols(dim)) > 1)


def is_linear(dim: int | Symbolic) -> bool:
    """Is it a sum of multiples of its symbols?"""
    return isinstance(dim, int) or all(len(atoms) == 1 and isinstance(atoms[0], Symbol) for atoms, _ in dim.terms)


def upper(dim: int | Symbolic) -> int:
    return bounds(dim)[1]


def evaluate(dim: int | Symbolic, values: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    return dim.constant + sum(c * math.prod(a.evaluate(values) for a in atoms) for atoms, c in dim.terms)


def symbols(dim: int | Symbolic) -> set[Symbol]:
    if isinstance(dim, int):
        return set()
    return {found for atoms, _ in dim.terms for atom in atoms for found in atom.symbols()}


def substituted(dim: int | Symbolic, table: Mapping[Symbol, Symbol]) -> int | Symbolic:
    """The dimension with other symbols in place of some."""
    names = {found.name: _atom(table.get(found, found)) for found in symbols(dim)}
    return parse(str(dim), names) if any(found in table for found in symbols(dim)) else dim


class NotStatic(TypeError):
    """Somebody took a size for known that is not."""


def static(dim: int | Symbolic) -> int:
    """The number, where the caller has made sure that there is one."""
    if not isinstance(dim, int):
        raise NotStatic(f"the size {dim} is known only at run time")
    return dim


def parse(text: str, table: Mapping[str, int | Symbolic]) -> int | Symbolic:
    """Reads what `str` printed; `table` knows the symbols."""

    def walk(node: ast.expr) -> int | Symbolic:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name) if name in table:
                return table[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = walk(left), walk(right)
                match op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.FloorDiv():
                        return a // b
                    case ast.Mod():
                        return a % b
            case ast.Call(func=ast.Name(id="min"), args=[left, right]):
                return minimum(walk(left), walk(right))
            case ast.Call(func=ast.Name(id="max"), args=[left, right]):
                return maximum(walk(left), walk(right))
        raise ValueError(f"not a dimension: {text}")

    return walk(ast.parse(text.strip(), mode="eval").body)
