"""int8 conv for cores with DSP instructions: one position at a time, in a quarter of the workspace
(mccompile/codegen/int8/dsp_patch.py)."""

from __future__ import annotations

from mccompile.codegen.int8.dsp_patch import DspPatch


class NarrowPatch(DspPatch):
    at_once = 1
    slower = 1.4
