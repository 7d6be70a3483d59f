"""What int8 convolutions and products share: which sums of products they make, and what their functions are given of
the numbers that rescale these."""

from __future__ import annotations

from typing import ClassVar

from ...base.dtypes import DType, i8, i32
from ...kernels.api import Call, Cost, Kernel, Target, static_views, supports_types
from .dot import IN_TABLE, TABLE, rescaling_in
from .rates import Rates, Work


class Int8Sums(Kernel):
    branches = ""
    raises: ClassVar[bool] = False  # may sums be raised before they are rescaled?
    packs: ClassVar[bool] = False  # also by what their multipliers say?
    stored: ClassVar[tuple[DType, ...]] = (i8,)  # types of weights
    code: ClassVar[int]

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(self.rates(call).cycles(self.work(call), target), code=self.code)

    def rates(self, call: Call) -> Rates:
        raise NotImplementedError

    def work(self, call: Call) -> Work:
        raise NotImplementedError

    def sums_refusal(self, call: Call, accumulator: DType, shifts: range, totals: bool) -> str:
        """Why these sums are not made, or nothing. Results may have these `shifts`; with `totals`, what is made of sums
        may be anything."""
        reason = static_views(call)
        if reason:
            return reason
        found = rescaling_in(call, self.raises)
        if (found is None and not totals) or (found is not None and not found.fits(shifts, self.packs)):
            return "the epilogue does not requantize to 8 bits, or its multiplier or shift is out of range"
        if found is None and (accumulator is not i32 or supports_types(call)):
            return "operands are not 8-bit integers, or the epilogue has a type that scalar C lacks"
        return ""

    def parameter_names(self, call: Call) -> tuple[list[str], list[str]]:
        outs, names = super().parameter_names(call)
        found = rescaling_in(call, self.raises)
        if found is not None:
            for index, name in zip(found.tables, (TABLE, *IN_TABLE), strict=False):
                names[index] = name
        return outs, names

    def unpassed(self, call: Call) -> frozenset[str]:
        return frozenset(IN_TABLE).intersection(self.parameter_names(call)[1])
