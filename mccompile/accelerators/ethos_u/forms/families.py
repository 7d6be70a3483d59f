"""Which operators have a form: `@form("Conv", ...)` on a class that says whether it takes a unit and writes it."""

from __future__ import annotations

from collections.abc import Callable

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .writing import Writing


class Form:
    """`takes` says why not; `write` does too, where it depends on how the operands lie."""

    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        raise NotImplementedError

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        raise NotImplementedError


class Movement:
    """An operator on int8 tensors themselves."""

    @staticmethod
    def takes(node: Node) -> str:
        raise NotImplementedError

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        raise NotImplementedError


FORMS: dict[str, type[Form]] = {}
MOVEMENTS: dict[str, type[Movement]] = {}


def form(*names: str) -> Callable[[type[Form]], type[Form]]:
    """Of units between quantized tensors, by the name of their operator; "" for those without one."""

    def known(of: type[Form]) -> type[Form]:
        FORMS.update(dict.fromkeys(names, of))
        return of

    return known


def movement(*names: str) -> Callable[[type[Movement]], type[Movement]]:
    def known(of: type[Movement]) -> type[Movement]:
        MOVEMENTS.update(dict.fromkeys(names, of))
        return of

    return known
