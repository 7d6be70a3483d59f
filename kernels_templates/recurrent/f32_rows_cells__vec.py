"""recurrent in vectors of cells: the sums of all gates of a vector of cells in one loop over the state, for several
rows of a batch at once.

The weights are packed in the order in which they are read; those of a vector of cells meet all rows of a group before
the next ones. The states of a group lie in the workspace, each with room up to a whole vector. Two states take turns,
but for a gru that resets before the product: it needs the reset state of all cells first, and updates in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.marked import named, read
from mccompile.codegen.cell_cases import cell_case
from mccompile.codegen.cells import Cells
from mccompile.codegen.loops import index_c
from mccompile.codegen.vector.vector_loops import Chunk, chunks
from mccompile.codegen.vector.vector_tiles import best_lanes, vector_headers, vector_refusal, vector_registers
from mccompile.expr.ir import Expr, apply, literal, operand
from mccompile.expr.vector_c import refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views, viewed
from mccompile.kinds.recurrent import GRU, LSTM, RNN, Recurrent

_ORDER = {RNN: "n", GRU: "zrn", LSTM: "iofn"}  # of the gates in x, r and bias
_STATES = {RNN: ("h_next",), GRU: ("h_next",), LSTM: ("h_next", "c")}  # besides h

GROUP = 32  # rows of a batch whose states are kept
CHAINS = 8  # sums that do not wait for each other: fewer leave multipliers idle

_ONE, _TANH = literal(1, f32), apply("tanh", operand(0, f32))
_SIGMOID = apply("div", _ONE, apply("add", _ONE, apply("exp", apply("neg", operand(0, f32)))))
OF_LSTM = (_SIGMOID, _TANH, _TANH)  # what its gates and its cell go through


class VectorCells(Cells):
    branches = ""

    def cases(self) -> Sequence[Case]:
        lstm, relu = OF_LSTM, apply("max", operand(0, f32), literal(0, f32))
        sigmoid, tanh, _ = lstm
        both, bias = (False, True), ("bias",)
        state = ("y", "h", "c")
        cases = [
            _case(f"lstm_{n}", Recurrent(LSTM, lstm, f32, uses=bias, gives=state), 3, 1, n) for n in (1, 3, 16, 17, 33)
        ]
        return [
            *cases,
            _case("rnn", Recurrent(RNN, (tanh,), f32), 5, 1, 7),
            _case("rnn_both", Recurrent(RNN, (relu,), f32, both, ("bias", "h0"), ("y", "h")), 4, 3, 5),
            _case("gru", Recurrent(GRU, (sigmoid, tanh), f32, uses=bias, gives=("y", "h")), 5, 2, 19),
            _case("gru_after", Recurrent(GRU, (sigmoid, tanh), f32, both, bias, ("y",), reset_after=True), 4, 2, 18),
            _case("gru_bare", Recurrent(GRU, (sigmoid, tanh), f32, reset_after=True), 4, 1, 8),
            _case("lstm_both", Recurrent(LSTM, lstm, f32, both, ("bias", "h0", "c0"), state), 4, 3, 20),
            *(_case(f"lstm_rows_{n}", Recurrent(LSTM, lstm, f32, uses=bias, gives=state), 3, n, 9) for n in (2, 7, 35)),
            _case("gru_rows", Recurrent(GRU, (sigmoid, tanh), f32, both, ("bias", "h0"), ("y", "h")), 3, 13, 11),
            _case("rnn_rows", Recurrent(RNN, (tanh,), f32, uses=bias, gives=("y",)), 3, 17, 8),
            _case("lstm_back", Recurrent(LSTM, (sigmoid, tanh, relu), f32, (True,), gives=("h",)), 4, 1, 31),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [lstm]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Recurrent)
        reason = vector_refusal(target) or static_views(call) or refusals(kind.expressions())
        if reason:
            return No(reason)
        if any(v.buffer.dtype is not f32 for v in (*call.ins, *call.outs)):
            return No("only for 32-bit floats and sequences of one length")
        if kind.clip is not None or kind.coupled or {"peepholes", "w"} & set(kind.uses):
            return No("not with clipping, coupled gates, peepholes or weights of the inputs")
        if call.ins[1].buffer.constant is None:
            return No("the weights are not constant")
        rows = [call.ins[0], *call.outs, *(v for name, v in zip(kind.names, call.ins, strict=True) if name == "bias")]
        if any(view.strides[-1] != 1 and view.shape[-1] != 1 for view in rows):
            return No("cells are not contiguous")
        hidden = static(call.ins[1].shape[2])
        if hidden == 0 or any(dim == 0 for dim in call.ins[0].shape):
            return No("the result is empty")
        lanes = best_lanes(hidden, target)
        batch = static(call.ins[0].shape[1])
        scratch = (1 + len(_states(kind))) * min(batch, GROUP) * -(-hidden // lanes) * lanes * 4
        constant = frozenset({1})
        alias = self.states_alias(call)
        registers = vector_registers(lanes, target)
        blocks = (lanes, *(_rows(len(gates), batch, registers) for gates in _passes(kind)))
        return Needs(alias=alias, constant=constant, scratch=scratch, scratch_align=64, numeric="ulp", blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.macs) * 0.5 * target.machine.vector_element, code=1500)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        kind, r, lanes = call.of(Recurrent), viewed(call.ins[1], constants[1]), call.blocks[0]
        order = _ORDER[kind.cell]
        directions, _, hidden = r.shape
        padded = np.zeros((directions, len(order), -(-hidden // lanes) * lanes, hidden), np.float32)
        padded[:, :, :hidden] = r.reshape(directions, len(order), hidden, hidden)
        vectors = padded.reshape(directions, len(order), -1, lanes, hidden).transpose(0, 2, 4, 1, 3)
        together = [[order.index(gate) for gate in gates] for gates in _passes(kind)]
        return {1: np.concatenate([vectors[:, :, :, gates].reshape(-1) for gates in together])}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"{' '.join(_passes(call.of(Recurrent)))} of cells in {call.blocks[0]}"}

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)).context()


class _Layout:
    """Works out the C for one call. Counters: d direction, b batch, s step, t time, j cell, k cell that is read."""

    def __init__(self, call: Call, names: tuple[list[str], list[str]]) -> None:
        self.kind, (self.lanes, *self.rows) = call.of(Recurrent), call.blocks
        self.views = dict(zip((*names[0], *names[1]), (*call.outs, *call.ins), strict=True))
        self.time, self.batch, self.directions, _ = (static(dim) for dim in call.ins[0].shape)
        self.hidden = static(call.ins[1].shape[2])
        self.padded = -(-self.hidden // self.lanes) * self.lanes
        self.d = "d" if self.directions > 1 else "0"
        self.b = "b" if self.batch > 1 else "0"
        self.groups = self.batch > GROUP
        f, rest = self.kind.activations[0], self.kind.activations[1:]
        self.activations: dict[str, Expr] = dict.fromkeys("iofzr", f) | {"n": rest[0] if rest else f}

    def context(self) -> dict[str, Any]:
        kind = self.kind
        states = _states(kind)
        x_at = self.index("x_in", [named("t"), self.b, self.d, "0"])
        y_at = self.index("y_out", [named("t"), self.d, self.b, "0"]) if "y" in kind.gives else ""
        reads_step = "t" in read(x_at + y_at).names
        return {
            "vector": f"mcc_f32x{self.lanes}",
            "of": f"f32x{self.lanes}",
            "lanes": self.lanes,
            "hidden": self.hidden,
            "padded": self.padded,
            "states": states,
            "swaps": "h_next" in states,
            "cell": kind.cell,
            "directions": self.directions,
            "batch": self.batch,
            "group": GROUP if self.groups else self.batch,
            "groups": self.groups,
            "place": "(b - begin)" if self.groups else "b",
            "time": self.time,
            "h0": self.start("h0"),
            "c0": self.start("c0"),
            "position": self.position() if reads_step else "",
            "x_at": x_at,
            "y_at": y_at,
            "stages": self.stages(),
            "scope": self.scope(reads_step),
            "stores": [self.last(name) for name in ("h", "c") if name in kind.gives],
        }

    def index(self, name: str, counters: Sequence[str], constant: int = 0) -> str:
        return index_c([static(stride) for stride in self.views[name].strides], counters, constant)

    def start(self, name: str) -> str:
        place = f"{name}_in"
        return f"{place}[{self.index(place, [self.d, self.b, 'j'])}]" if name in self.kind.uses else "0.0f"

    def last(self, name: str) -> str:
        place = f"{name}_out"
        return f"{place}[{self.index(place, [self.d, self.b, 'j'])}] = {name}[j];"

    def position(self) -> str:
        backwards = self.kind.backwards
        end = self.time - 1
        if len(set(backwards)) == 1:
            return f"{end} - s" if backwards[0] else "s"
        return f"d == 0 ? s : {end} - s" if backwards == (False, True) else f"d == 0 ? {end} - s : s"

    def scope(self, reads_step: bool) -> list[str]:
        """What blocks over rows of the batch may read."""
        counters = ["j", *["d"] * (self.directions > 1), *["t"] * reads_step, *["begin", "end"] * self.groups]
        return [*counters, *(f"float *all_{name}" for name in ("h", *_states(self.kind)))]

    def stages(self) -> list[dict[str, Any]]:
        found = []
        at = 0
        for gates, rows in zip(_passes(self.kind), self.rows, strict=True):
            each = self.padded * self.hidden * len(gates)
            resets = self.kind.cell == GRU and gates == "n"
            found.append(
                {
                    "gates": gates,
                    "state": "kept" if resets else "h",
                    "rows": rows,
                    "touched": _touched(self.kind, gates),
                    "single": any(many % rows for many in (self.batch, GROUP if self.groups else 0)),
                    "w_at": index_c([each, self.hidden * len(gates)], [self.d, "j"], at),
                    "chunks": [self.chunk(chunk, gates) for chunk in chunks("j", self.hidden, self.lanes)],
                }
            )
            at += each * self.directions
        return found

    def chunk(self, chunk: Chunk, gates: str) -> dict[str, Any]:
        late = "n" if self.kind.cell == GRU and self.kind.reset_after else ""
        starts = {}
        for gate in gates:
            bias = self.of_gate(chunk, "bias_in", gate) if "bias" in self.kind.uses else ""
            x = "" if gate == late else self.of_gate(chunk, "x_in", gate)
            starts[gate] = self.add(x, bias) if x and bias else x or bias or "zero"
        lines: list[str] = []
        if self.kind.cell == LSTM:
            lines = self.lstm(chunk)
        elif self.kind.cell == RNN:
            lines = [*self.activated("n"), *self.shown(chunk, "n_on")]
        elif self.kind.reset_after:
            lines = [*self.activated("z"), *self.activated("r")]
            lines.append(f"const {self.vector} sum = {self.fma('r_on', 'n', self.of_gate(chunk, 'x_in', 'n'))};")
            lines += [*self.activated("n", "sum"), *self.mixed(chunk, "z_on")]
        elif gates == "n":
            lines = [f"const {self.vector} z_on = {self.load('update')};", *self.activated("n")]
            lines += self.mixed(chunk, "z_on")
        else:
            lines = [*self.activated("z"), *self.activated("r"), self.keep("update", "z_on")]
            lines.append(self.keep("kept", self.mul("r_on", self.load("h"))))
        return {"header": chunk.header, "starts": starts, "lines": lines}

    @property
    def vector(self) -> str:
        return f"mcc_f32x{self.lanes}"

    def load(self, state: str) -> str:
        return f"mcc_load_f32x{self.lanes}({state} + j)"

    def keep(self, state: str, value: str) -> str:
        return f"mcc_store_f32x{self.lanes}({state} + j, {value});"

    def fma(self, a: str, b: str, c: str) -> str:
        return f"mcc_fma_f32x{self.lanes}({a}, {b}, {c})"

    def add(self, a: str, b: str) -> str:
        return f"mcc_add_f32x{self.lanes}({a}, {b})"

    def mul(self, a: str, b: str) -> str:
        return f"mcc_mul_f32x{self.lanes}({a}, {b})"

    def of_gate(self, chunk: Chunk, name: str, gate: str) -> str:
        """A vector of what x or bias has for a gate."""
        row = _ORDER[self.kind.cell].index(gate) * self.hidden
        place = index_c([1, 1], ["x_at", "j"], row) if name == "x_in" else self.index(name, [self.d, "j"], row)
        return chunk.load(self.lanes, name, place, 1)

    def activated(self, gate: str, value: str = "") -> list[str]:
        lines, text = to_vector_statements(self.activations[gate], [value or gate], self.lanes, local=f"{gate}_")
        return [*lines, f"const {self.vector} {gate}_on = {text};"]

    def lstm(self, chunk: Chunk) -> list[str]:
        lines = [line for gate in "ifno" for line in self.activated(gate)]
        lines.append(f"const {self.vector} cell = {self.fma('f_on', self.load('c'), self.mul('i_on', 'n_on'))};")
        lines.append(self.keep("c", "cell"))
        shown, value = to_vector_statements(self.kind.activations[2], ["cell"], self.lanes, local="shown_")
        return [*lines, *shown, *self.shown(chunk, self.mul("o_on", value))]

    def mixed(self, chunk: Chunk, update: str) -> list[str]:
        """The next state of a gru."""
        one = f"mcc_set_f32x{self.lanes}(1.0f)"
        new = self.mul(f"mcc_sub_f32x{self.lanes}({one}, {update})", "n_on")
        return self.shown(chunk, self.add(new, self.mul(update, self.load("h"))))

    def shown(self, chunk: Chunk, value: str) -> list[str]:
        state = "h_next" if "h_next" in _states(self.kind) else "h"
        lines = [f"const {self.vector} next = {value};", self.keep(state, "next")]
        if "y" in self.kind.gives:
            lines.append(chunk.store(self.lanes, "y_out", "y_at + j", "next"))
        return lines


def _passes(kind: Recurrent) -> tuple[str, ...]:
    """Gates whose sums are made together."""
    return ("zr", "n") if kind.cell == GRU and not kind.reset_after else (_ORDER[kind.cell],)


def _rows(gates: int, batch: int, registers: int) -> int:
    """How many rows are worked on together: every step of a sum loads a vector for each gate, and a number for each
    row, while as many products are added up as there are sums."""

    def effort(rows: int) -> float:
        return max(gates * rows, gates + rows, CHAINS) if rows > 1 else max(2 * gates, CHAINS / 2)

    most = max(1, min(batch, (registers - 1) // (gates + 1)))
    return min(range(1, most + 1), key=lambda rows: (batch // rows * effort(rows) + batch % rows * effort(1), -rows))


def _touched(kind: Recurrent, gates: str) -> tuple[str, ...]:
    """The states of a cell that are read or written once its sums are there."""
    if kind.cell != GRU:
        return _STATES[kind.cell]
    return ("h", "h_next") if kind.reset_after else ("h", "update", "kept")[: 3 if gates == "zr" else 2]


def _states(kind: Recurrent) -> tuple[str, ...]:
    return ("update", "kept") if kind.cell == GRU and not kind.reset_after else _STATES[kind.cell]


def lstm(batch: int, hidden: int, time: int) -> Case:
    case = _case(f"{batch}_{hidden}_{time}", Recurrent(LSTM, OF_LSTM, f32, gives=("y",)), time, batch, hidden)
    return replace(case, ranges={1: (-0.2, 0.2)})  # larger weights make small differences grow with time


def _case(name: str, kind: Recurrent, time: int, batch: int, hidden: int) -> Case:
    return replace(cell_case(name, kind, time, batch, hidden), constant=frozenset({1}))
