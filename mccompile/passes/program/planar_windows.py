"""planar_windows: windows over signals, and over volumes where two dimensions are enough, become windows over pictures.

Kernels in vectors, for DSP instructions and for dot products are written for two spatial dimensions. Views of one more
axis, or one less, cost nothing, so all kernels serve signals as well. After `fuse`, so that epilogues are in the calls.
"""

from __future__ import annotations

from ...program.ir import Program
from ...program.planar import planar
from ...program.replace_calls import replace_calls
from ..api import Context


def planar_windows(program: Program, context: Context) -> None:
    replace_calls(program.body, lambda call: [planar(call)])
