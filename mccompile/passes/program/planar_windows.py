"""planar_windows: windows over signals, and over volumes where two dimensions are enough, become windows over pictures.

Kernels in vectors, for DSP instructions and for dot products are written for two spatial dimensions. Views of one more
axis, or one less, cost nothing, so all kernels serve signals as well. After `fuse`, so that epilogues are in the calls.
"""

from __future__ import annotations

from ...program.ir import Call, Item, Program, bodies
from ...program.planar import planar
from ..api import Context


def planar_windows(program: Program, context: Context) -> None:
    _body(program.body)


def _body(body: list[Item]) -> None:
    for index, item in enumerate(body):
        for inner in bodies(item):
            _body(inner)
        if isinstance(item, Call):
            body[index] = planar(item)
