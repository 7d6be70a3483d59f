"""The C function of a kernel instance: what it is given, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from ..base.dtypes import DType
from ..base.marked import SIGNATURE, called, names_alone, plain, read
from ..base.records import dataclass
from ..plan.ir import Function
from ..plan.row_calls import Pieces
from .copies import without_copies
from .dead_constants import without_dead_constants
from .index_values import called_for
from .known_conditions import without_known_conditions
from .layout import Block, blocks
from .parts import in_parts
from .render import render
from .simplify import simplify


def signature(function: Function) -> str:
    """`void name(float *MCC_RESTRICT y, const float *MCC_RESTRICT x)`; parameters that may overlap are not restrict."""
    returns = "int" if function.kernel.failure(function.call) else "void"
    return f"{returns} " + called(function.name, parameters(function).values() or ["void"])


def parameters(function: Function) -> dict[str, str]:
    """Declarations of the parameters by name."""
    outs, ins = function.kernel.parameter_names(function.call)
    unpassed, found = function.unpassed, {}
    for names, views, const in ((outs, function.call.outs, ""), (ins, function.call.ins, "const ")):
        for name, view in zip(names, views, strict=True):
            if name not in unpassed:
                found[name] = f"{const}{pointer(view.buffer.dtype, name, name in function.aliased)}"
        if const and function.kernel.asks:
            found |= {name: f"const mcc_rows *MCC_RESTRICT {name}" for name in names}
    if function.kernel.queued(function.call):
        found["copying"] = "mcc_copying *MCC_RESTRICT copying"
    if function.call.scratch is not None:
        found["scratch"] = f"uint8_t *{'' if 'scratch' in function.aliased else 'MCC_RESTRICT '}scratch"
    if function.table_c:
        found["sizes"] = f"const {function.table_c} *MCC_RESTRICT sizes"
    whole = function.call.rows is None and function.call.workers == 1
    for name in (*function.sizes, *(() if whole else ("begin", "end"))):
        found[name] = f"mcc_index {name}"
    return found


def declarations(function: Function) -> dict[str, str]:
    """Of parameters and of the sizes that the body begins with, by name."""
    sizes = (*function.kernel.sizes(function.call), *function.constants)
    return parameters(function) | {name: f"mcc_index {name}" for name in sizes}


def pointer(dtype: DType, name: str, may_overlap: bool) -> str:
    return f"{dtype.storage_c} *{'' if may_overlap else 'MCC_RESTRICT '}{name}"


@dataclass(frozen=True)
class Printed:
    """The C function of a kernel instance, with marks where it may be folded, the functions that stand before it as
    it calls them, and the headers that it needs besides mcc.h."""

    parts: str
    own: str
    headers: frozenset[str]

    @property
    def text(self) -> str:
        return self.parts + self.own


def printed(function: Function, pieces: Pieces = frozenset()) -> Printed:
    """`pieces`: the rows for which it is called, where these are known."""
    kernel, call = function.kernel, function.call
    text, headers = _tidied(
        function.body or marked(function),
        function.name,
        tuple(_operands(function)),
        tuple(function.sizes),
        tuple(declarations(function).items()),
        pieces,
    )
    parts, _, body = text.partition(SIGNATURE)
    return Printed(parts, signature(function) + body, kernel.headers(call) | headers)


@lru_cache(maxsize=1000)  # a model is compiled again for each plan that is tried
def _tidied(
    text: str,
    name: str,
    operands: tuple[tuple[str, bool], ...],
    sizes: tuple[str, ...],
    declared: tuple[tuple[str, str], ...],
    pieces: Pieces,
) -> tuple[str, frozenset[str]]:
    """The function without what is not needed, in parts that are short enough, and the headers that its marks ask
    for."""
    top = blocks(names_alone(text))
    simplify(top)
    without_known_conditions(top, called_for(pieces))
    without_copies(top, dict(declared))
    simplify(top)
    names = without_dead_constants(top)
    # Parameters that the function does not read, or may not: operands without elements or of which what is read turned
    # out not to matter, and sizes.
    unread = dict.fromkeys(operand for operand, is_empty in operands if is_empty or operand not in names)
    more = (*sizes, *(("begin", "end") if pieces else ()))
    unused = [*unread, *(size for size in more if size not in names)]
    body = next(place for place, item in enumerate(top.inside) if SIGNATURE in str(item)) + 1
    cast(Block, top.inside[body]).inside[:0] = [f"(void){each};" for each in unused]
    return read(in_parts(top, name, dict(declared))).text, frozenset(read(text).headers)


def _operands(function: Function) -> Iterator[tuple[str, bool]]:
    """Those that are passed, by name, and whether they are without elements."""
    outs, ins = function.kernel.parameter_names(function.call)
    for name, view in zip((*outs, *ins), (*function.call.outs, *function.call.ins), strict=True):
        if name not in function.unpassed:
            yield name, view.type.count == 0


def marked(function: Function) -> str:
    """The C function with the marks of its template (base/marked.py), as it is filled in."""
    context = {**function.kernel.context(function.call), "function": function.name, "signature": SIGNATURE}
    return with_first(render(function.kernel.template, context), _constants(function))


def with_first(text: str, lines: Sequence[str]) -> str:
    """A function as `marked` gives it, with lines in front of those of its body."""
    head, _, body = text.partition(SIGNATURE)
    return "\n".join([head + SIGNATURE, "{", *lines, body.lstrip().removeprefix("{").lstrip()])


def function_text(function: Function) -> str:
    return plain(printed(function).text)


def _constants(function: Function) -> list[str]:
    """Declarations of the sizes that the body names."""
    sizes = enumerate(function.kernel.sizes(function.call).items())
    return [
        f"const mcc_index {name} = {f'sizes[{place}]' if function.table_c else number};"
        for place, (name, number) in sizes
    ]
