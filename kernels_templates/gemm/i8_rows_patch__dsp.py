"""int8 gemm with constant weights, for cores with DSP instructions (mccompile/codegen/int8/dsp_rows.py)."""

from __future__ import annotations

from mccompile.codegen.int8.dsp_rows import DspRows


class Rows(DspRows):
    pass
