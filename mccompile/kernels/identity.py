"""What decides how long a kernel takes for a call, as text: the same call has the same text in every network.

Invariant: two calls with the same text and kernel lead to the same C function, but for its name, what it shares memory
with, and what comes from weights. Where weights steer loops (`Kind.checks`) they are part of the text.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from ..base.dims import Dim, static
from ..base.text import write
from ..program.ir import CONSTANT, Call, View
from .api import Kernel, Needs

_LINE = 64  # bytes: how a view begins within so many is part of it


def identity(call: Call, needs: Needs) -> str:
    """Operands that the kernel has copied into a dense form lie so."""
    steering = {
        operand
        for check in call.kind.checks([v.type for v in call.ins], [v.type for v in call.outs])
        for operand in check.operands
    }
    ins = [
        _view(view, index in needs.dense, index in needs.constant, index in steering)
        for index, view in enumerate(call.ins)
    ]
    outs = [_view(view, index in needs.dense_outs) for index, view in enumerate(call.outs)]
    return f"{write(call.kind)} ({', '.join(ins)}) -> ({', '.join(outs)})"


def _view(view: View, dense: bool, packed: bool = False, steers: bool = False) -> str:
    constant = view.buffer.constant if view.buffer.role == CONSTANT else None
    text = f"{'const ' * (constant is not None)}{view.buffer.dtype.name}[{_sizes(view.shape)}"
    if not (dense or packed or view.is_dense):
        strides = tuple(0 if dim == 1 else s for dim, s in zip(view.shape, view.strides, strict=True))
        text += f" by {_sizes(strides)}"
    offset = view.offset
    if not (dense or constant is not None) and isinstance(offset, int):
        begin = offset * view.buffer.dtype.bits // 8 % _LINE
        text += f" at {begin}" if begin else ""
    return f"{text}]" + (f" #{constant.digest}" if steers and constant is not None else "")


def _sizes(sizes: tuple[Dim, ...]) -> str:
    return ",".join(str(static(size)) for size in sizes)


def version_of(kernel: Kernel, release: str) -> str:
    """What its files hold, and of which release all else is that it prints with."""
    return _digest(kernel.template, release)


@cache
def _digest(template: Path, release: str) -> str:
    stem = template.name.removesuffix(".c.j2")
    texts = [path.read_bytes() for path in (template, template.with_name(f"{stem}.py"))]
    return hashlib.sha256(b"\0".join([release.encode(), *texts])).hexdigest()[:16]
