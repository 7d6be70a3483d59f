"""Recurrent layers over sequences, whose state lasts from run to run.

Floats become the layers of ONNX; what these cannot say (projection, normalization of gates, bounds of the cell, coupled
gates, integers) is a Scan of one step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from ....graph.ir import Invalid, Unsupported
from ..file import Tensor
from ..onnx_nodes import Writer
from ..scope import Variable
from ..site import Site, converts, onnx_type

_ACTIVATIONS = {0: "Affine", 1: "Relu", 4: "Tanh"}
FORWARD, REVERSE = "forward", "reverse"
_GATES = 4  # in the order of the operands: input, forget, cell, output
_ONNX_GATES = (0, 3, 1, 2)


@converts("UNIDIRECTIONAL_SEQUENCE_RNN", "RNN")
def _rnn(site: Site) -> None:
    is_step = site.name == "RNN"
    options = site.options("RNNOptions" if is_step else "SequenceRNNOptions")
    time_major = is_step or bool(options["TimeMajor"])
    made = rnn_layer(site, steps_first(site, time_major, is_step), options["FusedActivationFunction"])
    finished(site, made, time_major, is_step=is_step)


@converts("UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM")
def _lstm(site: Site) -> None:
    is_step = site.name == "LSTM"
    options = site.options("LSTMOptions" if is_step else "UnidirectionalSequenceLSTMOptions")
    if options["FusedActivationFunction"] != 4 or (is_step and options["KernelType"]):
        raise Unsupported("its activation is not tanh, or it is a basic LSTM")
    time_major = is_step or bool(options["TimeMajor"])
    clips = options.real("CellClip"), options.real("ProjClip")
    made = lstm_layer(site, steps_first(site, time_major, is_step), clips)
    finished(site, made, time_major, is_step=is_step)


def rnn_layer(site: Site, sequence: str, activation: int, direction: str = FORWARD) -> str:
    """What all steps make, as floats; so does `lstm_layer`."""
    name = _ACTIVATIONS.get(activation)
    if name is None:
        raise Unsupported(f"its activation {activation}")
    hidden, (units, _) = site.variable(4), site.shape(1)
    bias = site.op("Concat", site.real(3), site.constant(np.zeros(units, np.float32)), axis=0)
    how = {"activations": [name], "hidden_size": units, "direction": direction}
    how |= {"activation_alpha": [1.0]} if name == "Affine" else {}
    weights = [site.op("Unsqueeze", each, site.ints(0)) for each in (site.real(1), site.real(2), bias)]
    first = site.op("Unsqueeze", hidden.now, site.ints(0))
    made, last = site.ops("RNN", sequence, *weights, "", first, outs=2, **how)
    site.assign(hidden, site.op("Squeeze", last, site.ints(0)))
    return site.op("Squeeze", made, site.ints(1))


def lstm_layer(site: Site, sequence: str, clips: tuple[float, float], direction: str = FORWARD) -> str:
    hidden, cell = site.variable(18), site.variable(19)
    extras = [index for index in (16, *range(20, 24)) if site.has(index)]
    plain = not extras and not any(clips) and site.has(1) and site.tensor(0).quantization is None
    if plain and site.shape(18) == site.shape(19):
        return _as_layer(site, sequence, hidden, cell, direction)
    return _as_scan(site, sequence, hidden, cell, clips, direction)


def steps_first(site: Site, time_major: bool, is_step: bool = False) -> str:
    """The input as floats."""
    if is_step:
        return site.op("Unsqueeze", site.real(0), site.ints(0))
    if site.rank(0) != 3:
        raise Invalid(f"its input has the shape {list(site.dims(0))}")
    return site.real(0) if time_major else site.real(0, (1, 0, 2))


def finished(site: Site, made: str, time_major: bool, index: int = 0, is_step: bool = False) -> None:
    """What the steps made as a result."""
    made = site.quantized(made, site.out(index))
    if is_step:
        made = site.op("Squeeze", made, site.ints(0))
    elif not time_major:
        made = site.transposed(made, (1, 0, 2))
    site.store(made, index)


def _as_layer(site: Site, sequence: str, hidden: Variable, cell: Variable, direction: str) -> str:
    units = site.shape(2)[0]

    def joined(first: int, order: Sequence[int] = _ONNX_GATES) -> str:
        return site.op("Concat", *(site.real(first + gate) for gate in order), axis=0)

    bias = site.op("Concat", joined(12), site.constant(np.zeros(_GATES * units, np.float32)), axis=0)
    peepholes = ""
    if site.has(11):
        peepholes = site.op("Unsqueeze", joined(9, (0, 2, 1)), site.ints(0))
    weights = [site.op("Unsqueeze", each, site.ints(0)) for each in (joined(1), joined(5), bias)]
    firsts = [site.op("Unsqueeze", state.now, site.ints(0)) for state in (hidden, cell)]
    how = {"hidden_size": units, "direction": direction}
    made = site.ops("LSTM", sequence, *weights, "", *firsts, peepholes, outs=3, **how)
    for state, last in zip((hidden, cell), made[1:], strict=True):
        site.assign(state, site.op("Squeeze", last, site.ints(0)))
    return site.op("Squeeze", made[0], site.ints(1))


def _as_scan(
    site: Site, sequence: str, hidden: Variable, cell: Variable, clips: tuple[float, float], direction: str
) -> str:
    """Between steps the state is stored as the file says, so that integers round as they do there."""
    take = site.shared.names.take
    h, c, x = (take(f"{site.title}/{name}") for name in ("hidden", "cell", "step"))
    body = _Step(site, Writer(site.shared))
    body.writer.title = site.title
    new_h, new_c, made = body.written(x, h, c, clips)
    shapes = ((h, hidden.tensor), (c, cell.tensor))
    taken = [helper.make_tensor_value_info(name, onnx_type(tensor.type), tensor.shape) for name, tensor in shapes]
    batch = hidden.tensor.shape[0]
    taken.append(helper.make_tensor_value_info(x, onnx_type("FLOAT32"), (batch, site.dims(0)[-1])))
    given = [
        helper.make_tensor_value_info(new_h, onnx_type(hidden.tensor.type), hidden.tensor.shape),
        helper.make_tensor_value_info(new_c, onnx_type(cell.tensor.type), cell.tensor.shape),
        helper.make_tensor_value_info(made, onnx_type("FLOAT32"), hidden.tensor.shape),
    ]
    graph = body.writer.graph("step", taken, given)
    back = [int(direction == REVERSE)]
    how = {"num_scan_inputs": 1, "scan_input_directions": back, "scan_output_directions": back}
    last_h, last_c, all_made = site.ops("Scan", hidden.now, cell.now, sequence, outs=3, body=graph, **how)
    site.assign(hidden, last_h)
    site.assign(cell, last_c)
    return all_made


class _Step:
    """One step of an LSTM; weights are read from outside."""

    def __init__(self, site: Site, writer: Writer) -> None:
        self.site, self.writer = site, writer

    def written(self, x: str, h: str, c: str, clips: tuple[float, float]) -> tuple[str, str, str]:
        site, op = self.site, self.writer.op
        hidden, cell = site.tensor(18), site.tensor(19)
        before = self.real(c, cell)
        past = self.real(h, hidden)
        forget = op("Sigmoid", self.gate(1, x, past, before))
        enter = op("Sigmoid", self.gate(0, x, past, before)) if site.has(1) else None
        enter = enter or op("Sub", site.number(1.0), forget)
        new = op("Tanh", self.gate(2, x, past, None))
        after = op("Add", op("Mul", forget, before), op("Mul", enter, new))
        after = self.clipped(after, clips[0])
        stored_c = self.stored(after, cell)
        after = self.real(stored_c, cell)
        made = op("Mul", op("Sigmoid", self.gate(3, x, past, after)), op("Tanh", after))
        if site.has(16):
            made = op("MatMul", made, site.real(16, (1, 0)))
            made = op("Add", made, site.real(17)) if site.has(17) else made
            made = self.clipped(made, clips[1])
        stored_h = self.stored(made, hidden)
        return op("Identity", stored_h), op("Identity", stored_c), op("Identity", self.real(stored_h, hidden))

    def gate(self, number: int, x: str, past: str, cell: str | None) -> str:
        """Before its function. Peepholes see the cell; layers may normalize."""
        site, op = self.site, self.writer.op
        total = op("MatMul", x, site.real(1 + number, (1, 0)))
        total = op("Add", total, op("MatMul", past, site.real(5 + number, (1, 0))))
        peephole = {0: 9, 1: 10, 3: 11}.get(number)
        if cell is not None and peephole is not None and site.has(peephole):
            total = op("Add", total, op("Mul", cell, site.real(peephole)))
        if site.has(20 + number):
            mean = op("ReduceMean", total, site.ints(-1), keepdims=1)
            less = op("Sub", total, mean)
            variance = op("ReduceMean", op("Mul", less, less), site.ints(-1), keepdims=1)
            total = op("Div", less, op("Sqrt", op("Add", variance, site.number(1e-8))))
            total = op("Mul", total, site.real(20 + number))
        return op("Add", total, site.real(12 + number)) if site.has(12 + number) else total

    def clipped(self, value: str, bound: float) -> str:
        site = self.site
        return self.writer.op("Clip", value, site.number(-bound), site.number(bound)) if bound > 0 else value

    def real(self, value: str, tensor: Tensor) -> str:
        return self.inside().dequantized(value, tensor)

    def stored(self, value: str, tensor: Tensor) -> str:
        return self.inside().quantized(value, tensor)

    def inside(self) -> Site:
        """The operator, written into the body."""
        made = Site(self.site.operator, self.site.scope)
        made.nodes = self.writer.nodes
        return made
