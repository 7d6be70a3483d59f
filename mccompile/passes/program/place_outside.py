"""place_outside: inputs and outputs in memory of the caller: the arena is planned without them.

Invariant: what lies outside is told by pointer before a run. An input there is only read; an output is a buffer of its
own that nothing else overlaps, so a result that is also something else (an input, a constant, a part of a larger
tensor, another output, what a loop carries) is copied there by the last call. An output in the arena that is an input
outside is copied likewise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import Problem, WrongUse, raise_all
from ...base.names import Names
from ...base.near import meant
from ...expr.ir import operand
from ...kinds.map import Map
from ...program.ir import EXTERNAL, TEMPORARY, Buffer, Call, Loop, Program, View, walk
from ...program.taken_names import taken_names
from ..api import ALL, Context


def place_outside(program: Program, context: Context) -> None:
    inputs = {name: buffer for name, buffer in program.inputs if name not in program.kept}
    outputs = [name for name, _ in program.outputs if name not in program.states.values()]
    known = [*inputs, *outputs]
    wanted = known if ALL in context.memory.external else context.memory.external
    raise_all(WrongUse, (_refused(name, known, program) for name in wanted if name not in known))
    for name in wanted:
        if name in inputs:
            inputs[name].role = EXTERNAL
    names = taken_names(program)
    for position, (name, view) in enumerate(program.outputs):
        if name in wanted and name in outputs:
            if not _stands_alone(program, view):
                view = _copied(program, name, view, names)
                program.outputs[position] = (name, view)
            view.buffer.role = EXTERNAL
        elif view.buffer.role == EXTERNAL:  # an input, or a part of one
            program.outputs[position] = (name, _copied(program, name, view, names))


def _refused(name: str, known: Sequence[str], program: Program) -> Problem:
    where, fix = f"--io {name}=external", f"leave out --io {name}=external"
    if name in program.kept or name in program.states.values():
        return Problem(f"{name!r} is a state", where, "it stays in the arena from run to run", fix)
    why = f"the inputs and outputs are {', '.join(known) or 'none'}"
    return Problem(f"there is no input or output {name!r}", where, why, meant(name, known) or fix)


def _stands_alone(program: Program, view: View) -> bool:
    """Is an output all that its buffer is for?"""
    carries = [carry for item in walk(program.body) if isinstance(item, Loop) for carry in item.carries]
    carried = any(view.buffer in (carry.now, carry.next) for carry in carries)
    users = sum(other.buffer is view.buffer for _, other in program.outputs)
    return view.buffer.role == TEMPORARY and view.covers_buffer and view.is_dense and users == 1 and not carried


def _copied(program: Program, name: str, view: View, names: Names) -> View:
    buffer = view.buffer
    provenance = buffer.provenance or (name,)
    made = Buffer(names.take(f"{buffer.name}_outside"), buffer.dtype, view.shape, provenance=provenance)
    program.body.append(Call(Map(operand(0, buffer.dtype)), (view,), (made.whole(),), provenance))
    return made.whole()
