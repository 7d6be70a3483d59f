"""Totals that are raised before they are rescaled, by a power of two that stands in their multiplier."""

from __future__ import annotations

from ..base.dtypes import i32
from .ir import Expr, apply, literal

POWER_BITS = 5  # the lowest ones of the multiplier


def raised_by(total: Expr, multiplier: Expr) -> Expr:
    """The total times two to the power that the multiplier ends with."""
    return apply("shift_left", total, apply("bit_and", multiplier, literal((1 << POWER_BITS) - 1, i32)))
