"""int8 conv for cores with Helium: two positions at once (mccompile/codegen/int8/helium_windows.py)."""

from __future__ import annotations

from mccompile.codegen.int8.helium_windows import HeliumWindows


class Windows(HeliumWindows):
    at_once = 2
    slower = 0.3
