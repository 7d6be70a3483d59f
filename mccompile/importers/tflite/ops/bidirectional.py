"""Recurrent layers in both directions: two layers in one, the second from the last step to the first.

Each becomes a layer of one direction, whose operands stand where that one has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....graph.ir import Unsupported
from ..site import Site, converts
from .recurrent import FORWARD, REVERSE, finished, lstm_layer, rnn_layer, steps_first

_NONE = -1


@converts("BIDIRECTIONAL_SEQUENCE_RNN")
def _rnn(site: Site) -> None:
    options = site.options("BidirectionalSequenceRNNOptions")
    parts = _parts(site, [range(1, 5), range(5, 9)], range(9, 12))
    major = bool(options["TimeMajor"])
    made = [
        rnn_layer(part, steps_first(part, major), options["FusedActivationFunction"], direction)
        for part, direction in zip(parts, (FORWARD, REVERSE), strict=True)
    ]
    _give(site, made, major, bool(options["MergeOutputs"]))


@converts("BIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(site: Site) -> None:
    options = site.options("BidirectionalSequenceLSTMOptions")
    if options["FusedActivationFunction"] != 4:
        raise Unsupported("its activation is not tanh")
    parts = _parts(site, [(*range(1, 18), 35, 36), (*range(18, 35), 37, 38)], range(39, 48))
    major, clips = bool(options["TimeMajor"]), (options.real("CellClip"), options.real("ProjClip"))
    made = [
        lstm_layer(part, steps_first(part, major), clips, direction)
        for part, direction in zip(parts, (FORWARD, REVERSE), strict=True)
    ]
    _give(site, made, major, bool(options["MergeOutputs"]))


def _parts(site: Site, places: Sequence[Sequence[int]], more: Sequence[int]) -> list[Site]:
    """The layers by themselves. `more`: a second input, then weights for it; without these it is that of the layer
    that goes back."""
    if any(site.has(index) for index in more[1:]):
        raise Unsupported("a second input has weights of its own")
    inputs = [more[0] if back and site.has(more[0]) else 0 for back in (False, True)]

    def taken(index: int) -> int:
        return site.operator.inputs[index] if site.has(index) else _NONE

    return [
        Site(replace(site.operator, inputs=tuple(taken(index) for index in (first, *found))), site.scope)
        for first, found in zip(inputs, places, strict=True)
    ]


def _give(site: Site, made: Sequence[str], major: bool, merged: bool) -> None:
    if merged:
        finished(site, site.op("Concat", *made, axis=-1), major)
        return
    for index, each in enumerate(made):
        finished(site, each, major, index)
