"""int8 conv for cores with Helium: two positions at once (mccompile/codegen/int8/helium_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.helium_im2col import HeliumIm2col


class Im2col(HeliumIm2col):
    at_once = 2
