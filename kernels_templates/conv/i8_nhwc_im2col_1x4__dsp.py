"""int8 conv for cores with DSP instructions: one position at a time, in a quarter of the workspace
(mccompile/codegen/int8/dsp_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.dsp_im2col import DspIm2col


class NarrowIm2col(DspIm2col):
    at_once = 1
