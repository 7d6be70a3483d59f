"""int8 conv for cores without SIMD: two positions and two steps of a sum at once
(mccompile/codegen/int8/scalar_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.scalar_im2col import ScalarIm2col


class PairsIm2col(ScalarIm2col):
    pairs = True
