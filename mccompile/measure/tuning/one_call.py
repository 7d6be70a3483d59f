"""One call of a network with one of its kernels as a model of its own: operands are inputs, constants its weights.

Invariant: the C function is that of the network, but for its name and for operands that share memory there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ... import __version__
from ...base.dims import NotStatic
from ...base.dtypes import string
from ...base.errors import MccError
from ...base.records import dataclass
from ...emit.blob import Carrier, Delivery
from ...emit.package import package
from ...kernels.api import Needs
from ...kernels.measurements import is_known
from ...memory.planners import PLANNERS
from ...passes.api import Context, Memory
from ...passes.planning.plan_memory import plan_memory
from ...passes.program.pack_constants import pack_constants
from ...passes.program.select_kernels import select_kernels
from ...plan.sizes import of_call
from ...program.ir import CONSTANT, INPUT, Buffer, Call, Program, View

NAME = "call"


@dataclass(frozen=True)
class IsolatedCall:
    """Its files by name; or why it cannot be measured alone."""

    files: Mapping[str, bytes]
    why_not: str = ""


def alone(call: Call, kernel: str, needs: Needs, context: Context, ticking: bool = False) -> IsolatedCall:
    """`ticking`: its one step tells when it ends."""
    why = _why_not(call)
    if why:
        return IsolatedCall({}, why)
    program = _program(call, kernel, needs)
    context = replace(context, memory=Memory(keep_inputs=True, rows=False), threads=1, explanations=[])
    try:
        select_kernels(program, context)
        if len(program.body) > 1:
            return IsolatedCall({}, "its operands have to be copied")
        pack_constants(program, context)
        plan = plan_memory(program, context.registry, context.target, NAME, PLANNERS["push-down"], keep_inputs=True)
        made = package(plan, [], [], __version__, delivery=Delivery(Carrier.EXTERNAL))
        files = {name: bytes(contents) for name, contents in made.files.items()}
    except (MccError, NotStatic) as error:
        return IsolatedCall({}, str(error))
    if ticking:
        own = made.own_files(plan.prefix, made.identity, plan.with_ticks)
        files[f"{plan.prefix}.c"] = own[f"{plan.prefix}.c"].text.encode()
    return IsolatedCall(files)


def _why_not(call: Call) -> str:
    views = (*call.ins, *call.outs)
    are_placed = all(isinstance(view.offset, int) and view.buffer.type.is_static for view in views)
    if not is_known(call) or of_call(call) or not are_placed:
        return "sizes are known only at run time"
    if any(view.buffer.dtype is string for view in views):
        return "it reads or writes text"
    if {view.buffer for view in call.ins} & {view.buffer for view in call.outs}:
        return "it writes what it reads"
    return ""


def _program(call: Call, kernel: str, needs: Needs) -> Program:
    program, known = Program(NAME), dict[Buffer, Buffer]()

    def own(view: View, role: str, name: str, dense: bool) -> View:
        old = view.buffer
        if dense and old.role != CONSTANT and not view.is_dense:
            return Buffer(name, old.dtype, view.shape, role).whole()
        if old not in known:
            constant = old.role == CONSTANT
            known[old] = Buffer(name, old.dtype, old.shape, CONSTANT if constant else role, old.constant)
        return replace(view, buffer=known[old])

    ins = [own(view, INPUT, f"x{n}", n in needs.dense) for n, view in enumerate(call.ins)]
    outs = [own(view, "temporary", f"y{n}", n in needs.dense_outs) for n, view in enumerate(call.outs)]
    program.inputs = [(b.name, b) for b in dict.fromkeys(view.buffer for view in ins) if b.role == INPUT]
    program.outputs = [(b.name, b.whole()) for b in dict.fromkeys(view.buffer for view in outs)]
    program.body = [replace(call, ins=tuple(ins), outs=tuple(outs), kernel=kernel, scratch=None, provenance=(NAME,))]
    return program
