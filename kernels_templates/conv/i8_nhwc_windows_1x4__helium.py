"""int8 conv for cores with Helium: one position at a time, in half of the workspace
(mccompile/codegen/int8/helium_windows.py)."""

from __future__ import annotations

from mccompile.codegen.int8.helium_windows import HeliumWindows


class NarrowWindows(HeliumWindows):
    at_once = 1
    slower = 0.5
