"""int8 conv for cores with DSP instructions: four positions at once, weights in twice the flash
(mccompile/codegen/int8/dsp_im2col.py)."""

from __future__ import annotations

from mccompile.base.dtypes import i8
from mccompile.codegen.int8.dsp_im2col import DspIm2col


class WideIm2col(DspIm2col):
    at_once = 4
    wide = True
    stored = (i8,)
