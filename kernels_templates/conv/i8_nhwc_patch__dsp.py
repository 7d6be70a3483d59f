"""int8 conv for cores with DSP instructions: four positions at once (mccompile/codegen/int8/dsp_patch.py)."""

from __future__ import annotations

from mccompile.codegen.int8.dsp_patch import DspPatch


class Patch(DspPatch):
    at_once = 4
