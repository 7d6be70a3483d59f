"""Reductions over axes, and where the extremes are."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts

_REDUCED = {
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}
_TRUTH = {"REDUCE_ALL": "ReduceMin", "REDUCE_ANY": "ReduceMax"}
_EXTREMES = {"ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin"}


@converts(*_REDUCED)
def _reduce(site: Site) -> None:
    kept = site.options("ReducerOptions")["KeepDims"]
    site.give(site.op(_REDUCED[site.name], site.real(0), site.ints(*axes(site)), keepdims=kept, noop_with_empty_axes=1))


@converts(*_TRUTH)
def _truth(site: Site) -> None:
    kept = site.options("ReducerOptions")["KeepDims"]
    x = site.cast(site.stored(0), "INT32")
    found = site.op(_TRUTH[site.name], x, site.ints(*axes(site)), keepdims=kept, noop_with_empty_axes=1)
    site.store(site.cast(found, "BOOL"))


@converts(*_EXTREMES)
def _extreme(site: Site) -> None:
    (axis,) = axes(site)
    found = site.op(_EXTREMES[site.name], site.stored(0), axis=axis, keepdims=0)
    site.store(site.cast(found, site.out().type))


@converts("CUMSUM")
def _cumsum(site: Site) -> None:
    options = site.options("CumsumOptions")
    how = {"exclusive": options["Exclusive"], "reverse": options["Reverse"]}
    (axis,) = axes(site)
    site.give(site.op("CumSum", site.real(0), site.scalar(axis), **how))


def axes(site: Site, index: int = 1) -> tuple[int, ...]:
    """The axes that an operand names, from 0 on, each once."""
    rank = site.rank(0)
    found = tuple(dict.fromkeys(axis + rank if axis < 0 else axis for axis in site.numbers(index)))
    if any(not 0 <= axis < rank for axis in found):
        raise Invalid(f"its axes are {list(site.numbers(index))}, and there are {rank}")
    return found
