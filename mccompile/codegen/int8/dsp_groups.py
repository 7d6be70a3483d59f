"""Convolutions of 8-bit integers with groups of a few channels, for cores with DSP instructions: what kernels of one
size of groups share. `product` counts what is done once for each result, too."""

from __future__ import annotations

from dataclasses import replace

from ...kernels.api import Call, Cost, Target
from .tap_places import TapPlaces

BESIDE_VECTORS = 3.0  # what a product takes over what dense kernels count it as, where these compute in vectors


class DspGroups(TapPlaces):
    saturated = "mcc_dsp_saturated_{type}({value}, {shift})"

    def cost(self, call: Call, target: Target) -> Cost:
        found = super().cost(call, target)
        return replace(found, time=found.time * BESIDE_VECTORS) if "helium" in target.isas else found

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_dsp_groups.h"})
