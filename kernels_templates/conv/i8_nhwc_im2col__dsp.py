"""int8 conv for cores with DSP instructions: four positions at once (mccompile/codegen/int8/dsp_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.dsp_im2col import DspIm2col


class Im2col(DspIm2col):
    at_once = 4
