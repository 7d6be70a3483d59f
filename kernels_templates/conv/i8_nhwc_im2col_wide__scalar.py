"""int8 conv for cores without SIMD: two channels at once, weights in twice the flash
(mccompile/codegen/int8/scalar_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.scalar_im2col import ScalarIm2col


class WideIm2col(ScalarIm2col):
    wide = True
