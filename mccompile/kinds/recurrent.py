"""recurrent: a layer of recurrent cells over a whole sequence; what the gates get from the inputs is computed before,
or, where `uses` names w, in the step that needs it.

For every direction d, batch b and time t, in the order of the direction, with the gates of the cell (rnn has one;
gru z, r, h; lstm i, o, f, c):

    gate = activation(clip(x[t, b, d, gate] + r[d, gate] . h + bias[d, gate]))

and h (for lstm also c) as ONNX defines it. Operands: x [time, batch, directions, gates*hidden]; r [directions,
gates*hidden, hidden]; then, where `uses` names them: bias [directions, gates*hidden], h0 and c0 [directions, batch,
hidden], peepholes [directions, 3*hidden], lengths [batch], w [directions, gates*hidden, inputs], w_bias, r_scale and
w_scale [directions, gates*hidden]. With w, x is [time, batch, directions, inputs], and w[d, gate] . x[t, b, d] +
w_bias[d, gate] stands above in its place. Where r or w are integers, their scales multiply the sums of products.
Results, where `gives` names them: y [time, directions, batch, hidden], h and c [directions, batch, hidden]. Beyond its
length a sequence gives zeros, and its last state is the one at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType, i32
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr
from .api import Kind

RNN, GRU, LSTM = "rnn", "gru", "lstm"
GATES = {RNN: 1, GRU: 3, LSTM: 4}
OPTIONAL = ("bias", "h0", "c0", "peepholes", "lengths", "w", "w_bias", "r_scale", "w_scale")
RESULTS = ("y", "h", "c")


@dataclass(frozen=True)
class Recurrent(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "r")
    cell: str
    activations: tuple[Expr, ...]  # f; f, g; f, g, h: of one operand each
    accumulator: DType
    backwards: tuple[bool, ...] = (False,)  # one for each direction
    uses: tuple[str, ...] = ()  # of OPTIONAL, in that order
    gives: tuple[str, ...] = ("y",)  # of RESULTS, in that order
    clip: float | None = None
    coupled: bool = False  # lstm: the forget gate is 1 - the input gate
    reset_after: bool = False  # gru: the reset gate is applied after the product with r

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.roles, *self.uses)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != len(self.names) or len(outs) != len(self.gives) or not outs:
            return f"it has operands {', '.join(self.names)} and results {', '.join(self.gives)}"
        x, r = ins[:2]
        if x.rank != 4 or r.rank != 3 or self.cell not in GATES:
            return f"x {x} and r {r} are not of a recurrent layer"
        time, batch, directions, width = x.shape
        _, rows, hidden = r.shape
        if "w" not in self.uses and (width != rows or "w_bias" in self.uses):
            return f"x {x} and r {r} do not fit together"
        if rows != hidden * GATES[self.cell] or r.shape != (directions, rows, hidden):
            return f"x {x} and r {r} do not fit together"
        if directions != len(self.backwards):
            return f"x {x} and r {r} do not fit together"
        state = (directions, batch, hidden)
        wanted = {
            "bias": (directions, rows),
            "h0": state,
            "c0": state,
            "peepholes": (directions, 3 * hidden),
            "lengths": (batch,),
            "w": (directions, rows, width),
            "w_bias": (directions, rows),
            "r_scale": (directions, rows),
            "w_scale": (directions, rows),
            "y": (time, directions, batch, hidden),
            "h": state,
            "c": state,
        }
        for name, type in zip((*self.uses, *self.gives), (*ins[2:], *outs), strict=True):
            if name not in wanted or type.shape != wanted[name] or (name == "lengths") != (type.dtype is i32):
                return f"{name} is {type}"
        types = dict(zip(self.names, ins, strict=True))
        for name in ("r", "w"):
            if name in types and types[name].dtype.is_integer != (f"{name}_scale" in types):
                return f"{name} is {types[name]}, and integers have a scale, floats none"
        if any(expr.dtype is not self.accumulator for expr in self.activations):
            return f"an activation does not compute in {self.accumulator}"
        return "" if len(self.activations) == {RNN: 1, GRU: 2, LSTM: 3}[self.cell] else "activations are missing"

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        time, batch, directions, width = ins[0].shape
        rows, hidden = ins[1].shape[1:]
        return time * batch * directions * rows * (hidden + (width if "w" in self.uses else 0))

    def expressions(self) -> tuple[Expr, ...]:
        return self.activations
