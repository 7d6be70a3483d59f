"""recurrent for cores whose FPU multiplies and adds one pair at a time: the sums of all gates of a step in tiles of up
to eight cells, then what becomes of them, cell by cell.

Sums and states lie in the workspace, those of each gate with room up to a whole tile. All sums of a step are there
before a cell changes, so there is one state.
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
from mccompile.codegen.fpu import CALL, PORTABLE, best_lanes, padded_lanes
from mccompile.codegen.loops import index_c
from mccompile.expr.ir import Expr, apply, literal, operand
from mccompile.expr.scalar_c import to_statements
from mccompile.kernels.api import Call, Case, Cost, Needs, No, Target, static_views, supports_types, viewed
from mccompile.kinds.recurrent import GRU, LSTM, RNN, Recurrent

_ORDER = {RNN: "n", GRU: "zrn", LSTM: "iofn"}  # of the gates in x, r and bias


class FpuCells(Cells):
    branches = ""

    def cases(self) -> Sequence[Case]:
        x, one = operand(0, f32), literal(1, f32)
        tanh, relu = apply("tanh", x), apply("max", x, literal(0, f32))
        sigmoid = apply("div", one, apply("add", one, apply("exp", apply("neg", x))))
        usual, both, bias, state = (sigmoid, tanh, tanh), (False, True), ("bias",), ("y", "h", "c")
        gru, after = Recurrent(GRU, (sigmoid, tanh), f32), Recurrent(GRU, (sigmoid, tanh), f32, reset_after=True)
        lstm = Recurrent(LSTM, usual, f32, uses=bias, gives=state)
        given = (*bias, "h0", "w", "w_bias")
        return [
            *(_case(f"lstm_{n}", lstm, 3, 1, n) for n in (1, 3, 8, 10, 17)),
            _case("rnn", Recurrent(RNN, (tanh,), f32), 5, 1, 7),
            _case("rnn_both", Recurrent(RNN, (relu,), f32, both, ("bias", "h0"), ("y", "h")), 4, 3, 5),
            _case("gru", replace(gru, uses=bias, gives=("y", "h")), 5, 2, 19),
            _case("gru_after", replace(after, backwards=both, uses=bias), 4, 2, 18),
            _case("gru_bare", after, 4, 1, 8),
            _case("lstm_both", replace(lstm, backwards=both, uses=("bias", "h0", "c0")), 4, 3, 20),
            _case("lstm_back", Recurrent(LSTM, (sigmoid, tanh, relu), f32, (True,), gives=("h",)), 4, 1, 11),
            _case("lstm_w", replace(lstm, backwards=both, uses=given), 4, 3, 5, 2),
            _case("rnn_w", Recurrent(RNN, (tanh,), f32, uses=("w",)), 4, 1, 6, 3),
            _case("gru_w", replace(gru, uses=given, gives=("y", "h")), 5, 2, 6, 3),
            _case("gru_after_w", replace(after, backwards=both, uses=given, gives=("h",)), 4, 2, 11, 9),
            _case("gru_after_w_bare", replace(after, uses=("w",)), 4, 1, 5, 4),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Recurrent)
        reason = static_views(call) or supports_types(call)
        if reason:
            return No(reason)
        if any(view.buffer.dtype is not f32 for view in (*call.ins, *call.outs)) or kind.accumulator is not f32:
            return No("only for 32-bit floats and sequences of one length")
        if kind.clip is not None or kind.coupled or "peepholes" in kind.uses:
            return No("not with clipping, coupled gates or peepholes")
        constant = frozenset(place for place, name in enumerate(kind.names) if name in ("r", "w"))
        if any(call.ins[place].buffer.constant is None for place in constant):
            return No("the weights are not constant")
        if static(call.ins[1].shape[2]) == 0 or any(dim == 0 for dim in call.ins[0].shape):
            return No("the result is empty")
        if "w" in kind.uses and call.ins[0].strides[3] != 1 and call.ins[0].shape[3] != 1:
            return No("inputs are not contiguous")
        scratch = f32.nbytes(sum(size for _, size in _Layout(call, self.parameter_names(call)).arrays))
        align = dict.fromkeys(constant, 4)
        return Needs(alias=self.states_alias(call), constant=constant, align=align, scratch=scratch, numeric="ulp")

    def cost(self, call: Call, target: Target) -> Cost:
        lanes = best_lanes(static(call.ins[1].shape[2]))
        each = (lanes + 1.8 + CALL / static(call.ins[1].shape[2])) / lanes
        return Cost(static(call.macs) * target.machine.mac * each / PORTABLE / 2, code=1200)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        kind, packed = call.of(Recurrent), {}
        for place in (n for n, name in enumerate(kind.names) if name in ("r", "w")):
            weights = viewed(call.ins[place], constants[place])
            gates = weights.reshape(weights.shape[0] * len(_ORDER[kind.cell]), -1, weights.shape[2])
            lanes = best_lanes(gates.shape[1])
            packed[place] = np.stack([padded_lanes(gate.T, lanes) for gate in gates])
        return packed

    def packing(self, call: Call) -> Mapping[int, str]:
        kind = call.of(Recurrent)
        text = f"gates of cells in {best_lanes(static(call.ins[1].shape[2]))}, padded"
        return {place: text for place, name in enumerate(kind.names) if name in ("r", "w")}

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_fpu.h"})

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)).context()


class _Layout:
    """Works out the C for one call. Counters: d direction, b batch, s step, t time, j cell."""

    def __init__(self, call: Call, names: tuple[list[str], list[str]]) -> None:
        self.kind = call.of(Recurrent)
        self.views = dict(zip((*names[0], *names[1]), (*call.outs, *call.ins), strict=True))
        self.time, self.batch, self.directions, inputs = (static(dim) for dim in call.ins[0].shape)
        self.inputs = inputs if "w" in self.kind.uses else 0
        self.hidden = static(call.ins[1].shape[2])
        self.lanes = best_lanes(self.hidden)
        self.padded = -(-self.hidden // self.lanes) * self.lanes
        self.order = _ORDER[self.kind.cell]
        self.d = "d" if self.directions > 1 else "0"
        self.b = "b" if self.batch > 1 else "0"
        f, rest = self.kind.activations[0], self.kind.activations[1:]
        self.activations: dict[str, Expr] = dict.fromkeys("iofzr", f) | {"n": rest[0] if rest else f}

    @property
    def resets_before(self) -> bool:
        return self.kind.cell == GRU and not self.kind.reset_after

    @property
    def keeps_given(self) -> bool:
        """Is what a gate gets from the inputs kept apart from its sum?"""
        return self.kind.reset_after and self.inputs > 0

    @property
    def arrays(self) -> list[tuple[str, int]]:
        """Of the workspace, with their sizes."""
        found = [("sums", self.padded * len(self.order)), ("h", self.hidden)]
        found += [("c", self.hidden)] if self.kind.cell == LSTM else []
        found += [("update", self.hidden), ("kept", self.hidden)] if self.resets_before else []
        return found + ([("given", self.padded)] if self.keeps_given else [])

    def context(self) -> dict[str, Any]:
        kind, order = self.kind, self.order
        x_at = self.index("x_in", [named("t"), self.b, self.d, "0"])
        y_at = self.index("y_out", [named("t"), self.d, self.b, "0"]) if "y" in kind.gives else ""
        split = 2 if self.resets_before else len(order)
        return {
            "arrays": self.arrays,
            "sums_of": f"mcc_fpu_sums_1x{self.lanes}",
            "hidden": self.hidden,
            "lanes": self.lanes,
            "cell": kind.cell,
            "directions": self.directions,
            "batch": self.batch,
            "time": self.time,
            "h0": self.start("h0"),
            "c0": self.start("c0"),
            "position": self.position() if "t" in read(x_at + y_at).names else "",
            "x_at": x_at,
            "y_at": y_at,
            "starts": self.starts(),
            "inputs": self.input_products(),
            "products": self.products("r_in", "h", 0, split, self.hidden),
            "late_products": self.products("r_in", "kept", split, len(order), self.hidden),
            "lines": self.lines(),
            "late_lines": [*self.activated("n"), "const float z_on = update[j];", *self.mixed()],
            "resets_before": self.resets_before,
            "stores": [self.last(name) for name in ("h", "c") if name in kind.gives],
        }

    def index(self, name: str, counters: Sequence[str], constant: int = 0) -> str:
        return index_c([static(stride) for stride in self.views[name].strides], counters, constant)

    def start(self, name: str) -> str:
        place = f"{name}_in"
        return f"{place}[{self.index(place, [self.d, self.b, 'j'])}]" if name in self.kind.uses else "0.0f"

    def last(self, name: str) -> str:
        return f"{name}_out[{self.index(f'{name}_out', [self.d, self.b, 'j'])}] = {name}[j];"

    def position(self) -> str:
        backwards, end = self.kind.backwards, self.time - 1
        if len(set(backwards)) == 1:
            return f"{end} - s" if backwards[0] else "s"
        return f"d == 0 ? s : {end} - s" if backwards == (False, True) else f"d == 0 ? {end} - s : s"

    def place(self, array: str, gate: str) -> str:
        return f"{array}[{index_c([1], ['j'], 0 if array == 'given' else self.order.index(gate) * self.padded)}]"

    def starts(self) -> list[str]:
        """What the sums of all gates of cell j start from."""
        lines = []
        for number, gate in enumerate(self.order):
            row = number * self.hidden
            names = [name for name in ("bias", "w_bias") if name in self.kind.uses]
            terms = {f"{n}_in": f"{n}_in[{self.index(f'{n}_in', [self.d, 'j'], row * self.along(n))}]" for n in names}
            late = self.kind.reset_after and gate == "n"
            if not self.inputs and not late:
                terms["x_in"] = f"x_in[{self.of_x(gate)}]"
            if late and self.inputs:
                lines.append(f"{self.place('given', gate)} = {terms.pop('w_bias_in', '0.0f')};")
            lines.append(f"{self.place('sums', gate)} = {' + '.join(terms.values()) or '0.0f'};")
        return lines

    def along(self, name: str) -> int:
        return static(self.views[f"{name}_in"].strides[1])

    def of_x(self, gate: str) -> str:
        stride = static(self.views["x_in"].strides[3])
        return index_c([1, stride], ["x_at", "j"], self.order.index(gate) * self.hidden * stride)

    def input_products(self) -> list[dict[str, str]]:
        if not self.inputs:
            return []
        if not self.keeps_given:
            return self.products("w_in", "x_in + x_at", 0, len(self.order), self.inputs)
        own = self.products("w_in", "x_in + x_at", 0, 2, self.inputs)
        return [*own, *self.products("w_in", "x_in + x_at", 2, 3, self.inputs, "given")]

    def products(
        self, weights: str, x: str, first: int, end: int, terms: int, sums: str = "sums"
    ) -> list[dict[str, str]]:
        """Those of the gates from `first` to `end`: where their loop ends, and the pointers at its tile j."""
        if first == end:
            return []
        each = len(self.order) * self.padded * terms
        at = index_c([each, terms], [self.d, "j"], first * self.padded * terms)
        to = index_c([1], ["j"], 0 if sums == "given" else first * self.padded)
        end_at = str((end - first) * self.padded)
        return [{"end": end_at, "sums": f"{sums} + {to}", "x": x, "w": f"{weights} + {at}", "terms": str(terms)}]

    def activated(self, gate: str, value: str = "") -> list[str]:
        lines, text = to_statements(self.activations[gate], [value or self.place("sums", gate)], local=f"{gate}_")
        return [*lines, f"const float {gate}_on = {text};"]

    def lines(self) -> list[str]:
        """What is done with the sums of cell j."""
        if self.kind.cell == LSTM:
            shown, value = to_statements(self.kind.activations[2], ["cell"], local="shown_")
            gates = [line for gate in "ifno" for line in self.activated(gate)]
            cell = "const float cell = f_on * c[j] + i_on * n_on;"
            return [*gates, cell, "c[j] = cell;", *shown, *self.shown(f"o_on * ({value})")]
        if self.kind.cell == RNN:
            return [*self.activated("n"), *self.shown("n_on")]
        gates = [*self.activated("z"), *self.activated("r")]
        if self.resets_before:
            return [*gates, "update[j] = z_on;", "kept[j] = r_on * h[j];"]
        given = self.place("given", "n") if self.inputs else f"x_in[{self.of_x('n')}]"
        total = f"const float total = {given} + r_on * {self.place('sums', 'n')};"
        return [*gates, total, *self.activated("n", "total"), *self.mixed()]

    def mixed(self) -> list[str]:
        """The next state of a gru."""
        return self.shown("(1.0f - z_on) * n_on + z_on * h[j]")

    def shown(self, value: str) -> list[str]:
        lines = [f"const float next = {value};", "h[j] = next;"]
        if "y" in self.kind.gives:
            place = index_c([1, static(self.views["y_out"].strides[3])], ["y_at", "j"])
            lines.append(f"y_out[{place}] = next;")
        return lines


def _case(name: str, kind: Recurrent, time: int, batch: int, hidden: int, inputs: int = 0) -> Case:
    constant = frozenset(n for n, operand in enumerate(kind.names) if operand in ("r", "w"))
    return replace(cell_case(name, kind, time, batch, hidden, inputs=inputs), constant=constant)
