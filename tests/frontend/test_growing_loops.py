"""Loops whose trips make a carried tensor longer: as large as a bound allows, and no larger."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile import backend
from mccompile.base.errors import MccError
from mccompile.frontend.load import load_proto

ROW = np.arange(3, dtype=np.float32).reshape(1, 3)


def model(body: str, opset: int = 17, outputs: str = "float[m,3] y", carried: str = "x", more: str = "") -> ModelProto:
    """`body` makes `next` (and what `more` names besides) from `s`."""
    names = ", ".join(part.split()[-1] for part in outputs.split(", "))
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (int64 trips, float[1,3] x) => ({outputs})
        <bool true = {{1}}, int64[1] last = {{-1}}> {{
          {names} = Loop <body = inner (int64 i, bool c, float[k,3] s{", float[k,3] t" if carried != "x" else ""})
            => (bool go, float next{more}) {{ go = Identity(c) {body} }}> (trips, true, {carried})
        }}"""
    )


ONE = "next = Concat <axis = 0> (s, x)"


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_as_many_rows_as_trips(trips: int) -> None:
    prepared = backend.prepare(model(ONE), bounds={"trips": (4,)})
    (got,) = prepared.run([np.array(trips), ROW])
    np.testing.assert_array_equal(got, np.repeat(ROW, 1 + trips, 0))


@pytest.mark.parametrize("bounds", [{"trips": (4,)}, {"y": (5,)}])
def test_more_than_the_bound_ends_with_a_status(bounds: dict[str, tuple[int, ...]]) -> None:
    prepared = backend.prepare(model(ONE), bounds=bounds)
    np.testing.assert_array_equal(prepared.run([np.array(4), ROW])[0], np.repeat(ROW, 5, 0))
    with pytest.raises(MccError, match="outside the bounds"):
        prepared.run([np.array(5), ROW])


def test_rows_that_are_read_while_they_grow() -> None:
    body = "m = ReduceSum <keepdims = 1> (s, zero) next = Concat <axis = 0> (s, m)"
    made = model(body)
    made.graph.initializer.add(name="zero", data_type=7, dims=[1], int64_data=[0])
    want = ROW
    for _ in range(4):
        want = np.concatenate([want, want.sum(0, keepdims=True)])
    np.testing.assert_allclose(backend.prepare(made, bounds={"trips": (5,)}).run([np.array(4), ROW])[0], want)


def test_two_of_them_and_one_that_is_collected() -> None:
    body = "next = Concat <axis = 0> (s, x) other = Concat <axis = 0> (x, x, t) e = Neg(x)"
    outputs, more = "float[m,3] y, float[n,3] z, float[l,1,3] e", ", float other, float e"
    made = model(body, outputs=outputs, carried="x, x", more=more)
    got = backend.prepare(made, bounds={"trips": (3,)}).run([np.array(3), ROW])
    assert [array.shape for array in got] == [(4, 3), (7, 3), (3, 1, 3)]


def test_without_a_bound_it_is_asked_for() -> None:
    with pytest.raises(MccError, match=r"grows by 1 in each trip.*\n.*--bound trips=100"):
        load_proto(model(ONE))


@pytest.mark.parametrize("body", ["next = Concat <axis = 0> (s, s)", "next = Concat <axis = 1> (s, s)"])
def test_what_does_not_grow_by_a_number_is_refused(body: str) -> None:
    with pytest.raises(MccError, match="after a trip"):
        load_proto(model(body), bounds={"trips": (4,)})
