"""Operators whose state lasts from run to run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..draw import Draw, draws


@draws("SVDF")
def _svdf(draw: Draw) -> Sequence[int]:
    batch, width, units, rank, memory = draw.int(1, 2), draw.int(1, 6), draw.int(1, 5), draw.int(1, 2), draw.int(2, 6)
    filters, net = units * rank, draw.net
    fields = {"Rank": rank, "FusedActivationFunction": draw.pick(0, 1)}
    if draw.flip():
        operands = [draw.constant((filters, width)), draw.constant((filters, memory)), draw.constant((units,))]
        state = net.tensor((batch, filters * memory), variable=True)
        x = draw.input((batch, width))
        return draw.op([x, *operands, state], [draw.out((batch, units))], "SVDFOptions", **fields)
    fields["FusedActivationFunction"] = 1
    x = draw.input((batch, width), "INT8", scale=0.05, zero=draw.int(-50, 50))
    features = net.constant(draw.chance.integers(-127, 128, (filters, width)).astype(np.int8), 0.02, 0)
    time = net.constant(draw.chance.integers(-3000, 3000, (filters, memory)).astype(np.int16), 0.0003, 0)
    state = net.tensor((batch, filters * memory), "INT16", 0.002, 0, variable=True)
    bias = net.constant(draw.chance.integers(-90000, 90000, units).astype(np.int32), 0.002 * 0.0003, 0)
    y = draw.out((batch, units), "INT8", scale=0.3, zero=draw.int(-20, 20))
    return draw.op([x, features, time, bias, state], [y], "SVDFOptions", **fields)


@draws("UNIDIRECTIONAL_SEQUENCE_RNN")
def _rnn(draw: Draw) -> Sequence[int]:
    batch, time, width, units, major = draw.int(1, 2), draw.int(1, 4), draw.int(1, 4), draw.int(1, 5), draw.flip()
    x = draw.input((time, batch, width) if major else (batch, time, width))
    operands = [draw.constant(shape) for shape in ((units, width), (units, units), (units,))]
    state = draw.net.tensor((batch, units), variable=True)
    out = draw.out((time, batch, units) if major else (batch, time, units))
    fields = {"TimeMajor": major, "FusedActivationFunction": 4}
    return draw.op([x, *operands, state], [out], "SequenceRNNOptions", **fields)


def integer_lstm(draw: Draw) -> Sequence[int]:
    """8-bit activations and weights, 16-bit cells, as the converter writes it."""
    batch, time, width, cells, net = draw.int(1, 2), draw.int(1, 4), draw.int(1, 4), draw.int(2, 5), draw.net
    q, made = {"scale": 0.03, "zero": draw.int(-20, 20)}, {"scale": 1 / 128, "zero": draw.int(-9, 9)}
    x = draw.input((batch, time, width), "INT8", **q)

    def weights(columns: int) -> int:
        return net.constant(draw.chance.integers(-127, 128, (cells, columns)).astype(np.int8), 0.008, 0)

    from_x, from_h = [weights(width) for _ in range(4)], [weights(cells) for _ in range(4)]
    biases = [
        net.constant(draw.chance.integers(-3000, 3000, cells).astype(np.int32), 0.03 * 0.008, 0) for _ in range(4)
    ]
    states = [
        net.tensor((batch, cells), "INT8", **made, variable=True),
        net.tensor((batch, cells), "INT16", 2.0**-11, 0, variable=True),
    ]
    gates = [net.tensor((), "INT16", 2.0**-12, 0) for _ in range(4)] + [net.tensor((), "INT8", **made)]
    out = net.tensor((batch, time, cells), "INT8", **made)
    operands = [x, *from_x, *from_h, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    fields = {"FusedActivationFunction": 4, "CellClip": draw.pick(0.0, 5.0), "intermediates": gates}
    return draw.op(operands, [out], "UnidirectionalSequenceLSTMOptions", **fields)


@draws("BIDIRECTIONAL_SEQUENCE_RNN")
def _both_rnn(draw: Draw) -> Sequence[int]:
    batch, time, width, units, major = draw.int(1, 2), draw.int(1, 4), draw.int(1, 4), draw.int(1, 5), draw.flip()
    merged, operands = draw.flip(), list[int]()

    def shape(size: int) -> tuple[int, ...]:
        return (time, batch, size) if major else (batch, time, size)

    x = draw.input(shape(width))
    for size in (units, draw.int(1, 5)):
        operands += [draw.constant(each) for each in ((size, width), (size, size), (size,))]
        operands.append(draw.net.tensor((batch, size), variable=True))
    sizes = [units, draw.net.tensors[operands[-1]]["shape"][1]]
    outs = [draw.out(shape(size)) for size in ([sum(sizes)] if merged else sizes)]
    fields = {"TimeMajor": major, "FusedActivationFunction": 4, "MergeOutputs": merged}
    return draw.op([x, *operands, -1, -1, -1], outs, "BidirectionalSequenceRNNOptions", **fields)


@draws("BIDIRECTIONAL_SEQUENCE_LSTM")
def _both_lstm(draw: Draw) -> Sequence[int]:
    time, width, major, merged = draw.int(1, 4), draw.int(1, 4), draw.flip(), draw.flip()
    batch = draw.int(1, 2) if major or not merged else 1  # LiteRT's states of the second overlap
    net, coupled, projected, peephole = draw.net, draw.flip(0.25), draw.flip(0.25), draw.flip(0.25)

    def shape(size: int) -> tuple[int, ...]:
        return (time, batch, size) if major else (batch, time, size)

    x, operands, states, outs = draw.input(shape(width)), list[int](), list[int](), list[int]()
    cells = draw.int(2, 5)  # in both directions: LiteRT asks for that
    made = draw.int(1, 3) if projected else cells
    for _ in range(2):
        parts = [draw.constant((cells, width)) for _ in range(4)] + [draw.constant((cells, made)) for _ in range(4)]
        parts += [draw.constant((cells,)) if peephole else -1 for _ in range(3)]
        parts += [draw.constant((cells,)) for _ in range(4)]
        if coupled:
            for place in (0, 4, 8, 11):
                parts[place] = -1
        operands += [*parts, draw.constant((made, cells)) if projected else -1, -1]
        states += [net.tensor((batch, size), variable=True) for size in (made, cells)]
        outs.append(made)
    results = [draw.out(shape(size)) for size in ([sum(outs)] if merged else outs)]
    fields = {"FusedActivationFunction": 4, "TimeMajor": major, "MergeOutputs": merged}
    fields |= {"CellClip": draw.pick(0.0, 0.0, 1.0)}
    operands = [x, *operands, *states, *[-1] * 9]
    return draw.op(operands, results, "BidirectionalSequenceLSTMOptions", **fields)


@draws("UNIDIRECTIONAL_SEQUENCE_LSTM", steps=3)  # steps follow each other
def _lstm(draw: Draw) -> Sequence[int]:
    if draw.flip(0.4):
        return integer_lstm(draw)
    batch, time, width, cells, major = draw.int(1, 2), draw.int(1, 4), draw.int(1, 4), draw.int(2, 5), draw.flip()
    net, coupled, projected, peephole = draw.net, draw.flip(0.25), draw.flip(0.25), draw.flip(0.25)
    made = draw.int(1, 3) if projected else cells
    x = draw.input((time, batch, width) if major else (batch, time, width))
    from_x = [draw.constant((cells, width)) for _ in range(4)]
    from_h = [draw.constant((cells, made)) for _ in range(4)]
    peepholes = [draw.constant((cells,)) if peephole else -1 for _ in range(3)]
    biases = [draw.constant((cells,)) for _ in range(4)]
    if coupled:
        from_x[0] = from_h[0] = biases[0] = peepholes[0] = -1
    projection = [draw.constant((made, cells)) if projected else -1, -1]
    states = [net.tensor((batch, size), variable=True) for size in (made, cells)]
    out = draw.out((time, batch, made) if major else (batch, time, made))
    fields = {"FusedActivationFunction": 4, "TimeMajor": major, "CellClip": draw.pick(0.0, 0.0, 1.0)}
    operands = [x, *from_x, *from_h, *peepholes, *biases, *projection, *states, -1, -1, -1, -1]
    return draw.op(operands, [out], "UnidirectionalSequenceLSTMOptions", **fields)
