"""Einsum: products of operands, summed over the labels that the result does not have.

Labels become axes: a diagonal (a label used twice in one operand) is a view whose strides add up, and what remains is
one reduction over the product of all operands. Two operands that share a contracted label are a matrix product.
"""

from __future__ import annotations

import re
import string
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from ..base.dims import Dim, product
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import apply, cast, operand
from ..graph.ir import Value
from ..kinds.gemm import Gemm as GemmKind
from ..program.ir import View
from .api import Fact, Invalid, Lowering, Operator, Site
from .reduce import reduce_call
from .rules.backward import static_shape
from .rules.elementwise import check_dtypes, wide

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Einsum(Operator):
    versions = (12, 28)
    equation: str

    def terms(self, site: Site) -> tuple[list[str], str]:
        """The labels of each operand, and those of the result; digits stand for the axes of an ellipsis."""
        ranks = [site.type(i).rank for i in range(len(site.facts))]
        left, arrow, right = self.equation.replace(" ", "").partition("->")
        parts = left.split(",")
        if len(parts) != len(ranks):
            raise Invalid(f"equation {self.equation!r} is about {len(parts)} operands, there are {len(ranks)}")
        found = []
        widest = 0
        for part, rank in zip(parts, ranks, strict=True):
            if not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", part):
                raise Invalid(f"{part!r} in equation {self.equation!r} is not a list of labels")
            more = rank - len(part.replace("...", ""))
            if more < 0 or more > 9 or (more and "..." not in part):
                raise Invalid(f"{part!r} in equation {self.equation!r} does not fit an operand of rank {rank}")
            widest = max(widest, more)
            found.append(part.replace("...", "".join(str(9 - n) for n in reversed(range(more)))))
        dots = "".join(str(9 - n) for n in reversed(range(widest)))
        if arrow:
            result = right.replace("...", dots)
        else:
            letters = "".join(parts).replace(".", "")
            result = dots + "".join(sorted(label for label in set(letters) if letters.count(label) == 1))
        if len(set(result)) != len(result) or not set(result) <= set("".join(found)):
            raise Invalid(f"the result of equation {self.equation!r} names a label twice, or one that no operand has")
        return found, result

    def sizes(self, site: Site) -> dict[str, Dim]:
        terms, _ = self.terms(site)
        sizes: dict[str, Dim] = {}
        for index, term in enumerate(terms):
            for label, dim in zip(term, site.shape(index), strict=True):
                have = sizes.get(label, 1)
                if have != 1 and dim != 1 and have != dim:
                    raise Invalid(f"label {label!r} of equation {self.equation!r} is {have} and {dim}")
                sizes[label] = dim if have == 1 else have
        return sizes

    def infer(self, site: Site) -> list[Fact]:
        check_dtypes(self.name, "numbers", [site.type(i) for i in range(len(site.facts))])
        sizes, (_, result) = self.sizes(site), self.terms(site)
        return [Fact(TensorType(site.type(0).dtype, tuple(sizes[label] for label in result)))]

    def lower(self, to: Lowering) -> None:
        terms, result = self.terms(to.site)
        sizes, type = self.sizes(to.site), to.type()
        views = [_by_label(to.input(i), term, sizes) for i, term in enumerate(terms)]
        summed = [label for label in dict.fromkeys("".join(terms)) if label not in result]
        if len(terms) == 2 and summed:
            found = _as_gemm(to, views, terms, result, summed, sizes)
            if found is not None:
                to.set(0, found)
                return
        order = result + "".join(summed)
        full = tuple(sizes[label] for label in order)
        ins = [_seen(view, order).broadcast_to(full) for view in views]
        accumulator = wide(type.dtype)
        elements = [cast(operand(i, type.dtype), accumulator) for i in range(len(ins))]
        element = reduce(lambda a, b: apply("mul", a, b), elements)
        if not summed:
            to.set(0, to.map(cast(element, type.dtype), ins, full))
            return
        axes = tuple(range(len(result), len(order)))
        total = reduce_call(to, axes, "add", element, ins, cast(operand(0, accumulator), type.dtype))
        to.set(0, to.reshape(total, type.shape))

    def gradient(self, back: Backward) -> None:
        terms, result = self.terms(back.site)
        for index, term in enumerate(terms):
            if back.wants(index):
                if len(set(term)) != len(term):
                    back.refuse(f"{term!r} in equation {self.equation!r} is a diagonal, whose gradient has no rule")
                others = [n for n in range(len(terms)) if n != index]
                ins = [back.of(), *(back.input(n) for n in others)]
                labels = [result, *(terms[n] for n in others)]
                back.give(index, *self._by_labels(back, ins, labels, index, term))

    def _by_labels(
        self, back: Backward, ins: list[Value], labels: list[str], index: int, term: str
    ) -> tuple[Value, tuple[int, ...]]:
        """The sum of products over all that `term` does not name; what only it names is the same all along."""
        known = set("".join(labels))
        plain = dict(zip(sorted(known), string.ascii_letters, strict=False))
        texts = ["".join(plain[label] for label in text) for text in [*labels, [n for n in term if n in known]]]
        found = back.op("Einsum", *ins, equation=f"{','.join(texts[:-1])}->{texts[-1]}")
        sizes = iter(static_shape(found))
        return back.reshape(found, [next(sizes) if label in known else 1 for label in term]), back.shape(index)


@dataclass(frozen=True)
class _Labelled:
    """A view with one axis per label."""

    view: View
    labels: str


def _by_label(view: View, term: str, sizes: dict[str, Dim]) -> _Labelled:
    labels = "".join(dict.fromkeys(term))
    strides: dict[str, Dim] = {}
    for label, dim, stride in zip(term, view.shape, view.strides, strict=True):
        # an axis of size 1 stays where it is while the label runs over more
        strides[label] = strides.get(label, 0) + (0 if dim == 1 else stride)
    here = {label: max_dim for label in labels for max_dim in [_own_size(view, term, label)]}
    shape = tuple(here[label] for label in labels)
    return _Labelled(replace(view, shape=shape, strides=tuple(strides[label] for label in labels)), labels)


def _own_size(view: View, term: str, label: str) -> Dim:
    found = [dim for name, dim in zip(term, view.shape, strict=True) if name == label]
    return next((dim for dim in found if dim != 1), 1)


def _seen(part: _Labelled, order: str) -> View:
    """The view with the axes of `order`; those it does not have are of size 1."""
    shape: list[Dim] = []
    strides: list[Dim] = []
    for label in order:
        at = part.labels.find(label)
        shape.append(part.view.shape[at] if at >= 0 else 1)
        strides.append(part.view.strides[at] if at >= 0 else 0)
    return replace(part.view, shape=tuple(shape), strides=tuple(strides))


def _as_gemm(
    to: Lowering, parts: list[_Labelled], terms: list[str], result: str, summed: list[str], sizes: dict[str, Dim]
) -> View | None:
    """Batches of matrix products, where every label belongs to batch, rows, columns or the sum."""
    a, b = parts
    both = set(a.labels) & set(b.labels)
    if any(label not in both for label in summed):
        return None
    for part in parts:
        if any(dim != sizes[label] for label, dim in zip(part.labels, part.view.shape, strict=True)):
            return None  # broadcast along a label
    if any(sizes[label] == 0 for label in sizes):
        return None
    batch = [label for label in result if label in both]
    rows = [label for label in result if label in a.labels and label not in both]
    columns = [label for label in result if label in b.labels and label not in both]
    dtype = to.type().dtype

    def shape(labels: list[str]) -> Shape:
        return tuple(sizes[label] for label in labels)

    left = to.reshape(_seen(a, "".join([*batch, *rows, *summed])),
                      (*shape(batch), product(shape(rows)), product(shape(summed))))  # fmt: skip
    right = to.reshape(_seen(b, "".join([*batch, *summed, *columns])),
                       (*shape(batch), product(shape(summed)), product(shape(columns))))  # fmt: skip
    total = wide(dtype)
    type = TensorType(dtype, (*shape(batch), product(shape(rows)), product(shape(columns))))
    epilogue = None if total is dtype else cast(operand(0, total), dtype)
    made = to.call(GemmKind(total, epilogue), [left, right], type)[0]
    order = [*batch, *rows, *columns]
    return to.reshape(made, shape(order)).permuted([order.index(label) for label in result])
