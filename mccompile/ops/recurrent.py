"""RNN, GRU, LSTM: one matrix product for what the inputs give to all gates at all times, then cells over the sequence.

Both directions run in one call, unless their activations differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ..base.dtypes import DType, i32
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, cast, operand
from ..kinds.concat import Concat
from ..kinds.gemm import Gemm
from ..kinds.recurrent import GATES, Recurrent
from ..program.ir import Call, View
from .activation import Elu, HardSigmoid, LeakyRelu, Sigmoid, Softplus, Softsign, ThresholdedRelu, add, mul, number
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, make
from .rules.elementwise import wide
from .rules.known_shapes import show
from .rules.unrolled import Cell, gru, lstm, rnn, written_out

if TYPE_CHECKING:
    from .rules.backward import Backward

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
# name in lower case -> alpha and beta where none are given; None: it takes none
_ACTIVATIONS: dict[str, tuple[float | None, float | None]] = {
    "relu": (None, None),
    "tanh": (None, None),
    "sigmoid": (None, None),
    "softsign": (None, None),
    "softplus": (None, None),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
}


@dataclass(frozen=True)
class Layer(Operator, abstract=True):
    """What the three have in common. Operands: x, w, r, bias, sequence_lens, initial_h; of an LSTM also initial_c and
    peepholes."""

    usual: ClassVar[tuple[str, ...]] = ()  # activations
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    activations: tuple[str, ...] = ()
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None
    layout: int = 0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 7:  # whether anybody reads the whole sequence shows in the results
            node.attributes.pop("output_sequence", None)
        return make(cls, node)

    @property
    def cell(self) -> str:
        """What the kind calls it."""
        return self.name.lower()

    @property
    def coupled(self) -> bool:
        return False

    @property
    def reset_after(self) -> bool:
        return False

    def infer(self, site: Site) -> list[Fact]:
        x, w, r = (site.type(i) for i in range(3))
        if x.rank != 3 or w.rank != 3 or r.rank != 3 or not x.dtype.is_float:
            raise Invalid(f"x {x}, w {w} and r {r} are not three tensors of rank 3")
        if self.direction not in DIRECTIONS or self.layout not in (0, 1):
            raise Invalid(f"direction {self.direction!r} and layout {self.layout} mean nothing")
        directions, hidden = len(DIRECTIONS[self.direction]), r.shape[2]
        if self.hidden_size not in (None, hidden):
            raise Invalid(f"hidden_size is {self.hidden_size}, but r is {r}")
        rows = hidden * GATES[self.cell]
        time, batch = (x.shape[1], x.shape[0]) if self.layout else x.shape[:2]
        state = (batch, directions, hidden) if self.layout else (directions, batch, hidden)
        wanted: list[tuple[str, Shape]] = [
            ("w", (directions, rows, x.shape[2])),
            ("r", (directions, rows, hidden)),
            ("bias", (directions, rows * 2)),
            ("sequence_lens", (batch,)),
            ("initial_h", state),
            ("initial_c", state),
            ("peepholes", (directions, hidden * 3)),
        ]
        for index, (name, shape) in enumerate(wanted, 1):
            if site.has(index) and site.type(index) != TensorType(i32 if index == 4 else x.dtype, shape):
                raise Invalid(f"{name} is {site.type(index)}, not of shape {show(shape)} as x {x} and r {r} want it")
        self.functions(x.dtype)
        y = (batch, time, directions, hidden) if self.layout else (time, directions, batch, hidden)
        types = [TensorType(x.dtype, y), *[TensorType(x.dtype, state)] * (2 if isinstance(self, LSTM) else 1)]
        return [Fact(type) for type in types][: site.outputs]

    def functions(self, dtype: DType) -> list[tuple[Expr, ...]]:
        """The activations of each direction."""
        each = len(self.usual)
        given = self.activations or self.usual * len(DIRECTIONS[self.direction])
        named = named_activations(given, self.activation_alpha, self.activation_beta)
        if len(named) != each * len(DIRECTIONS[self.direction]):
            raise Invalid(f"activations are {', '.join(given)}, not {each} for each direction")
        found = [_activation(name, alpha, beta, operand(0, wide(dtype))) for name, alpha, beta in named]
        return [tuple(found[d * each : (d + 1) * each]) for d in range(len(found) // each)]

    def lower(self, to: Lowering) -> None:
        functions = self.functions(to.site.type(0).dtype)
        backwards = DIRECTIONS[self.direction]
        wanted = [position for position in range(len(to.node.outputs)) if to.wants(position)]
        if len(set(functions)) == 1:
            outs = [self.turned(to.result(position), position) for position in wanted]
            self.layer(to, functions[0], backwards, wanted, outs)
            for position, view in zip(wanted, outs, strict=True):
                to.set(position, self.turned_back(view, position))
            return
        parts: list[list[View]] = []
        for d, (own, back) in enumerate(zip(functions, backwards, strict=True)):
            outs = []
            for position in wanted:
                type = to.type(position)
                axis = self.direction_axis(position)
                part = to.buffer(type.dtype, (*type.shape[:axis], 1, *type.shape[axis + 1 :])).whole()
                outs.append(self.turned(part, position))
            self.layer(to, own, (back,), wanted, outs, d)
            parts.append(outs)
        for place, position in enumerate(wanted):
            pieces = [self.turned_back(outs[place], position) for outs in parts]
            to.set(position, to.call(Concat(self.direction_axis(position)), pieces, to.type(position))[0])

    def direction_axis(self, position: int) -> int:
        return (2 if self.layout else 1) if position == 0 else (1 if self.layout else 0)

    def turned(self, view: View, position: int) -> View:
        """A result in the order of axes that the kind has."""
        if not self.layout:
            return view
        return view.permuted((1, 2, 0, 3) if position == 0 else (1, 0, 2))

    def turned_back(self, view: View, position: int) -> View:
        if not self.layout:
            return view
        return view.permuted((2, 0, 1, 3) if position == 0 else (1, 0, 2))

    def layer(
        self,
        to: Lowering,
        functions: tuple[Expr, ...],
        backwards: tuple[bool, ...],
        wanted: Sequence[int],
        outs: Sequence[View],
        first: int = 0,
    ) -> None:
        """The calls for as many directions as `backwards` says, from `first` on."""
        count = len(backwards)
        accumulator = wide(to.site.type(0).dtype)

        def own(index: int, axis: int = 0) -> View:
            return to.input(index).sliced(axis, first, count)

        rows = to.site.shape(2)[1]
        bias = own(3) if to.has(3) else None
        ins = [self.product(to, own(1), None if bias is None else bias.sliced(1, 0, rows), accumulator), own(2)]
        uses = []
        if bias is not None:
            uses.append("bias")
            ins.append(bias.sliced(1, rows, rows))
        for index, name in ((5, "h0"), (6, "c0")):
            if to.has(index):
                uses.append(name)
                state = own(index, 1 if self.layout else 0)
                ins.append(state.permuted((1, 0, 2)) if self.layout else state)
        if to.has(7):
            uses.append("peepholes")
            ins.append(own(7))
        if to.has(4):
            uses.append("lengths")
            ins.append(to.input(4))
        kind = Recurrent(
            self.cell,
            functions,
            accumulator,
            backwards,
            tuple(uses),
            tuple("yhc"[position] for position in wanted),
            self.clip,
            self.coupled,
            self.reset_after,
        )
        to.body.append(Call(kind, tuple(ins), tuple(outs), to.provenance))

    def product(self, to: Lowering, w: View, bias: View | None, accumulator: DType) -> View:
        """x times w, [time, batch, directions, rows]."""
        x = to.input(0)
        outer, inner, depth = x.shape
        directions, rows, _ = w.shape
        flat = to.reshape(x, (outer * inner, depth))
        if directions == 1:
            ins = [flat, w.sliced(0, 0, 1).permuted((0, 2, 1))]
            ins[1] = replace(ins[1], shape=ins[1].shape[1:], strides=ins[1].strides[1:])
            shape: Shape = (outer * inner, rows)
            added = bias
        else:
            ins = [flat.broadcast_to((directions, *flat.shape)), w.permuted((0, 2, 1))]
            shape = (directions, outer * inner, rows)
            added = (
                None
                if bias is None
                else replace(bias, shape=(directions, 1, rows), strides=(bias.strides[0], 0, bias.strides[1]))
            )
        epilogue = None
        if added is not None:
            ins.append(added.broadcast_to(shape))
            bias_type = added.buffer.dtype
            total = operand(0, accumulator)
            epilogue = add(total, cast(operand(1, bias_type), accumulator))
        made = to.call(Gemm(accumulator, epilogue), ins, TensorType(accumulator, shape))[0]
        if directions == 1:
            split = to.reshape(made, (outer, inner, 1, rows))
        else:
            split = to.reshape(made, (directions, outer, inner, rows)).permuted((1, 2, 0, 3))
        return split.permuted((1, 0, 2, 3)) if self.layout else split

    def step(self) -> Cell:
        """How a step is written out."""
        raise NotImplementedError

    def gradient(self, back: Backward) -> None:
        """Of the steps written out one after the other."""
        backwards, each = DIRECTIONS[self.direction], len(self.usual)
        given = self.activations or self.usual * len(backwards)
        named = named_activations(given, self.activation_alpha, self.activation_beta)
        functions = [named[d * each : (d + 1) * each] for d in range(len(backwards))]
        states = 2 if isinstance(self, LSTM) else 1
        back.instead(written_out(back, self.step(), states, functions, backwards, bool(self.layout), self.clip))


def named_activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> list[tuple[str, float, float]]:
    """Name in lower case, alpha and beta of each; those that are given are for those that take one, in order."""
    left = list(alphas), list(betas)
    found = []
    for written in names:
        name = written.lower()
        if name not in _ACTIVATIONS:
            raise Invalid(f"there is no activation {written!r}, but {', '.join(_ACTIVATIONS)}")
        alpha, beta = (
            given.pop(0) if usual is not None and given else usual or 0.0
            for usual, given in zip(_ACTIVATIONS[name], left, strict=True)
        )
        found.append((name, alpha, beta))
    return found


def _activation(name: str, alpha: float, beta: float, x: Expr) -> Expr:
    match name:
        case "relu":
            return apply("max", x, number(0, x))
        case "tanh":
            return apply("tanh", x)
        case "sigmoid":
            return Sigmoid().formula(x)
        case "softsign":
            return Softsign().formula(x)
        case "softplus":
            return Softplus().formula(x)
        case "affine":
            return add(mul(number(alpha, x), x), number(beta, x))
        case "leakyrelu":
            return LeakyRelu(alpha).formula(x)
        case "thresholdedrelu":
            return ThresholdedRelu(alpha).formula(x)
        case "scaledtanh":
            return mul(number(alpha, x), apply("tanh", mul(number(beta, x), x)))
        case "hardsigmoid":
            return HardSigmoid(alpha, beta).formula(x)
        case "elu":
            return Elu(alpha).formula(x)
    raise Invalid(f"there is no activation {name!r}")


@dataclass(frozen=True)
class RNN(Layer):
    versions = (1, 7, 14, 22)
    usual = ("Tanh",)

    def step(self) -> Cell:
        return rnn


@dataclass(frozen=True)
class GRU(Layer):
    versions = (1, 3, 7, 14, 22)
    usual = ("Sigmoid", "Tanh")
    linear_before_reset: int = 0

    @property
    def reset_after(self) -> bool:
        return bool(self.linear_before_reset)

    def step(self) -> Cell:
        return gru(self.reset_after)


@dataclass(frozen=True)
class LSTM(Layer):
    versions = (1, 7, 14, 22)
    usual = ("Sigmoid", "Tanh", "Tanh")
    input_forget: int = 0

    @property
    def coupled(self) -> bool:
        return bool(self.input_forget)

    def step(self) -> Cell:
        return lstm(self.coupled)
