"""int8 gemm with constant weights, for cores with DSP instructions: four rows at once, weights in twice the flash
(mccompile/codegen/int8/dsp_rows.py)."""

from __future__ import annotations

from mccompile.base.dtypes import i8
from mccompile.codegen.int8.dsp_rows import DspRows


class WideRows(DspRows):
    wide = True
    stored = (i8,)
