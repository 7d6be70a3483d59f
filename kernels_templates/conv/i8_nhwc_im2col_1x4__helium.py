"""int8 conv for cores with Helium: one position at a time, in half of the workspace
(mccompile/codegen/int8/helium_im2col.py)."""

from __future__ import annotations

from mccompile.codegen.int8.helium_im2col import HeliumIm2col


class NarrowIm2col(HeliumIm2col):
    at_once = 1
