"""recurrent in portable C: one cell after the other, the sums of all its gates in one loop over the state.

States lie where the results want them, or else in the workspace, in the type that is computed in. The result of a cell
must not be seen by the others of the same step, so a step writes to y, or else to the workspace, and is copied then; a
gru that resets before the product needs the reset state of all cells first, and updates in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import DType, f16, f32, f64
from mccompile.base.marked import named, read
from mccompile.base.records import dataclass
from mccompile.codegen.cell_cases import cell_case
from mccompile.codegen.cells import Cells
from mccompile.codegen.loops import index_c
from mccompile.expr.ir import Expr, apply, literal, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Needs,
    No,
    Target,
    static_views,
    supports_types,
)
from mccompile.kinds.recurrent import GRU, LSTM, RNN, Recurrent

_ORDER = {RNN: "n", GRU: "zrn", LSTM: "iofn"}  # of the gates in x, r and bias


@dataclass(frozen=True)
class Gate:
    name: str
    start: str  # what the sum starts from
    weight: str
    w: str  # of the input
    apply: str  # statements that make `<name>_on` of the sum
    scale: str = ""  # of integer weights
    w_scale: str = ""


class StridedCells(Cells):
    def cases(self) -> Sequence[Case]:
        x = operand(0, f32)
        sigmoid, tanh, relu = _sigmoid(f32), apply("tanh", x), apply("max", x, literal(0, f32))
        every = ("bias", "h0", "c0", "peepholes", "lengths")
        both, three, usual = (False, True), ("y", "h", "c"), (sigmoid, tanh, tanh)
        return [
            cell_case("rnn", Recurrent(RNN, (tanh,), f32), 5, 1, 7),
            cell_case("rnn_both", Recurrent(RNN, (relu,), f32, both, ("bias", "h0"), ("y", "h"), clip=0.5), 4, 3, 5),
            cell_case("gru", Recurrent(GRU, (sigmoid, tanh), f32, (False,), ("bias",), ("y", "h")), 5, 2, 6),
            cell_case(
                "gru_reset_after",
                Recurrent(GRU, (sigmoid, tanh), f32, both, ("bias", "h0", "lengths"), ("y", "h"), reset_after=True),
                4, 3, 5,
            ),
            cell_case("lstm", Recurrent(LSTM, (sigmoid, tanh, tanh), f32, gives=("y", "h", "c")), 5, 1, 8),
            cell_case("lstm_all", Recurrent(LSTM, (sigmoid, tanh, relu), f32, both, every, three, clip=1.5), 4, 3, 5),
            cell_case("lstm_coupled", Recurrent(LSTM, usual, f32, (True,), gives=("h",), coupled=True), 3, 2, 4),
            cell_case("lstm_f16", Recurrent(LSTM, (sigmoid, tanh, tanh), f32, gives=("y",)), 3, 1, 4, f16),
            cell_case("rnn_w", Recurrent(RNN, (tanh,), f32, both, ("h0", "w"), ("y", "h")), 4, 3, 5, inputs=7),
            cell_case("gru_w", Recurrent(GRU, (sigmoid, tanh), f32, uses=("bias", "w", "w_bias")), 5, 2, 6, inputs=3),
            cell_case(
                "gru_after_w",
                Recurrent(GRU, (sigmoid, tanh), f32, (True,), ("bias", "w", "w_bias"), ("h",), reset_after=True),
                4, 2, 5, inputs=9,
            ),
            cell_case("lstm_w", Recurrent(LSTM, usual, f32, both, (*every, "w", "w_bias"), three), 4, 3, 5, inputs=2),
            cell_case("lstm_w_f16", Recurrent(LSTM, usual, f32, uses=("w",), gives=three), 3, 2, 4, f16, 6),
            cell_case("lstm_bytes", Recurrent(LSTM, usual, f32, both, ("bias", "r_scale"), three), 3, 2, 5),
            cell_case(
                "gru_bytes",
                Recurrent(GRU, (sigmoid, tanh), f32, uses=("h0", "w", "r_scale", "w_scale")),
                4, 2, 5, inputs=3,
            ),
            cell_case(
                "gru_after_bytes",
                Recurrent(GRU, (sigmoid, tanh), f32, uses=("bias", "w", "w_bias", "w_scale"), reset_after=True),
                3, 2, 4, inputs=5,
            ),
            cell_case("rnn_f64", Recurrent(RNN, (apply("tanh", operand(0, f64)),), f64), 3, 1, 4, f64),
        ]  # fmt: skip

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Recurrent)
        reason = static_views(call, call.ins[1]) or supports_types(call)
        if reason:
            return No(reason)
        if kind.accumulator not in (f32, f64):
            return No(f"{kind.accumulator} is not computed in")
        hidden = static(call.ins[1].shape[2])
        scratch = kind.accumulator.nbytes(len(_in_workspace(call)) * hidden)
        return Needs(alias=self.states_alias(call), scratch=scratch, symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(upper(call.macs) * target.machine.mac, code=800)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, self.parameter_names(call)).context()


def _resets_before(kind: Recurrent) -> bool:
    return kind.cell == GRU and not kind.reset_after


def _in_workspace(call: Call) -> list[str]:
    """The arrays of one number per cell that have no place in a result."""
    kind = call.of(Recurrent)
    placed = {name for name, view in zip(kind.gives, call.outs, strict=True) if view.buffer.dtype is kind.accumulator}
    if _resets_before(kind):
        wanted = {"h": "h", "update": "", "kept": ""}
    else:
        wanted = {"h": "h", "next": "y"} | ({"c": "c"} if kind.cell == LSTM else {})
    return [name for name, result in wanted.items() if result not in placed]


class _Printer:
    """Works out the C for one call. Counters: d direction, b batch, s step, t time, j cell, k cell that is read."""

    def __init__(self, call: Call, names: tuple[list[str], list[str]]) -> None:
        self.kind = call.of(Recurrent)
        self.views = dict(zip((*names[0], *names[1]), (*call.outs, *call.ins), strict=True))
        self.time, self.batch = call.ins[0].shape[:2]
        self.directions = static(call.ins[0].shape[2])
        self.inputs = static(call.ins[0].shape[3]) if "w" in self.kind.uses else 0
        self.hidden = static(call.ins[1].shape[2])
        self.workspace = _in_workspace(call)
        self.d = "d" if self.directions > 1 else "0"
        self.b = "b" if self.batch != 1 else "0"
        self.type = self.kind.accumulator.compute_c

    def context(self) -> dict[str, Any]:
        kind = self.kind
        names = _ORDER[kind.cell]
        f, rest = kind.activations[0], kind.activations[1:]
        by_gate = dict.fromkeys("iofzr", f) | {"n": rest[0] if rest else f}
        gates = {name: self.gate(name, number, by_gate[name]) for number, name in enumerate(names)}
        if kind.coupled:
            del gates["f"]
        n_input = ""
        if kind.cell == GRU and kind.reset_after:
            number = names.index("n")
            n_input = self.input(number)
            start = self.at("bias_in", [self.d, "j"], number) if "bias" in kind.uses else literal_c(0, kind.accumulator)
            gates["n"] = replace(gates["n"], start=start)
        x_at = self.index("x_in", [named("t"), self.b, self.d, "0"])
        y_at = self.index("y_out", [named("t"), self.d, self.b, "0"]) if "y" in kind.gives else ""
        reads_step = "t" in read(x_at + y_at).names
        return {
            "type": self.type,
            "nothing": literal_c(0, kind.accumulator),
            "one": literal_c(1, kind.accumulator),
            "cell": kind.cell,
            "hidden": self.hidden,
            "directions": self.directions,
            "batch": self.batch,
            "time": self.time,
            "workspace": self.workspace,
            "inputs": self.inputs,
            "given": load_c(self.views["x_in"].buffer.dtype, "x_in", self.along_x("i")),
            "h": {counter: self.array("h", counter) for counter in "jk"},
            "c": self.array("c", "j") if kind.cell == LSTM else "",
            "next": "" if _resets_before(kind) else self.array("next", "j"),
            "resets_before": _resets_before(kind),
            "coupled": kind.coupled,
            "lengths": self.at("lengths_in", [self.b]) if "lengths" in kind.uses else "",
            "h0": self.start("h0"),
            "c0": self.start("c0"),
            "position": self.position() if reads_step else "",
            "x_at": x_at,
            "y_at": y_at,
            "gates": gates,
            "n_input": n_input,
            "peepholes": self.peepholes() if "peepholes" in kind.uses else None,
            "shown": self.shown() if kind.cell == LSTM else None,
            "stores": {name: self.store(name) for name in kind.gives if name in ("y", *self.workspace)},
            "y_is_next": "y" in kind.gives and not _resets_before(kind) and "next" not in self.workspace,
            "zero": self.store("y", literal_c(0, kind.accumulator)) if "y" in kind.gives else "",
        }

    def index(self, name: str, counters: Sequence[str], constant: Dim = 0) -> str:
        return index_c(self.views[name].strides, counters, constant)

    def at(self, name: str, counters: Sequence[str], gate: int = 0) -> str:
        """An element; `gate` moves the last counter but those behind it by so many times the hidden size."""
        view = self.views[name]
        axis = 0 if name == "lengths_in" else 1
        return load_c(view.buffer.dtype, name, self.index(name, counters, gate * self.hidden * view.strides[axis]))

    def along_x(self, counter: str, constant: int = 0) -> str:
        stride = self.views["x_in"].strides[3]
        return index_c([1, stride], ["x_at", counter], constant * stride)

    def array(self, name: str, counter: str) -> str:
        """The number of a cell in an array of them."""
        if name in self.workspace:
            return f"{name}[{counter}]"
        if name == "next":
            return f"y_out[{index_c([1, self.views['y_out'].strides[3]], ['y_at', counter])}]"
        return f"{name}_out[{self.index(f'{name}_out', [self.d, self.b, counter])}]"

    def input(self, number: int) -> str:
        """What a gate gets from the inputs."""
        if "w" not in self.kind.uses:
            return load_c(self.views["x_in"].buffer.dtype, "x_in", self.along_x("j", number * self.hidden))
        total = f"{_ORDER[self.kind.cell][number]}_given"
        return f"{total} + {self.at('w_bias_in', [self.d, 'j'], number)}" if "w_bias" in self.kind.uses else total

    def gate(self, name: str, number: int, activation: Expr) -> Gate:
        start = self.input(number)
        if "bias" in self.kind.uses:
            start += f" + {self.at('bias_in', [self.d, 'j'], number)}"
        weight = self.at("r_in", [self.d, "j", "k"], number)
        w = self.at("w_in", [self.d, "j", "i"], number) if "w" in self.kind.uses else ""
        scale, w_scale = (
            self.at(f"{name}_in", [self.d, "j"], number) if name in self.kind.uses else ""
            for name in ("r_scale", "w_scale")
        )
        clipped = self.clipped(name)
        lines, value = to_statements(activation, [f"{name}_in" if clipped else name], local=f"{name}_")
        last = f"const {self.type} {name}_on = {value};"
        return Gate(name, start, weight, w, "\n".join([*clipped, *lines, last]), scale, w_scale)

    def clipped(self, name: str) -> list[str]:
        clip = self.kind.clip
        if clip is None:
            return []
        dtype = self.kind.accumulator
        inside = apply("max", apply("min", operand(0, dtype), literal(clip, dtype)), literal(-clip, dtype))
        return [f"const {self.type} {name}_in = {to_statements(inside, [name])[1]};"]

    def shown(self) -> dict[str, Any]:
        """What of the cell's state goes into its result."""
        lines, value = to_statements(self.kind.activations[2], ["shown"], local="shown_")
        return {"lines": lines, "value": value}

    def peepholes(self) -> dict[str, str]:
        return {gate: self.at("peepholes_in", [self.d, "j"], number) for number, gate in enumerate("iof")}

    def start(self, name: str) -> str:
        if name not in self.kind.uses:
            return literal_c(0, self.kind.accumulator)
        return load_c(
            self.views[f"{name}_in"].buffer.dtype, f"{name}_in", self.index(f"{name}_in", [self.d, self.b, "j"])
        )

    def position(self) -> str:
        backwards = self.kind.backwards
        if len(set(backwards)) == 1:
            return "steps - 1 - s" if backwards[0] else "s"
        return "d == 0 ? s : steps - 1 - s" if backwards == (False, True) else "d == 0 ? steps - 1 - s : s"

    def store(self, name: str, value: str = "") -> str:
        view = self.views[f"{name}_out"]
        if name == "y":
            place = index_c([1, view.strides[3]], ["y_at", "j"])
            value = value or self.array("h" if _resets_before(self.kind) else "next", "j")
        else:
            place, value = self.index(f"{name}_out", [self.d, self.b, "j"]), self.array(name, "j")
        return store_c(view.buffer.dtype, f"{name}_out", place, value)


def _sigmoid(dtype: DType) -> Expr:
    one = literal(1, dtype)
    return apply("div", one, apply("add", one, apply("exp", apply("neg", operand(0, dtype)))))
