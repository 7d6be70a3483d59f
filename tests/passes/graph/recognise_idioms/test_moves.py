"""Moves of elements spelled by reshapes become one operator, and move what the spelling moved."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mccompile.passes.api import Context
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

from .test_recognise_idioms import graph_of, operators

# First shape, order, last shape, type of the result.
MOVES = {
    "channel shuffle of flat pictures": ("flat_cut", "0,2,1,3", "same", "1,6,4,4", "ChannelShuffle"),
    "channel shuffle": ("cut", "0,2,1,3,4", "same", "1,6,4,4", "ChannelShuffle"),
    "space to depth": ("blocks", "0,3,5,1,2,4", "deep", "1,24,2,2", "SpaceToDepth"),
    "space to depth, channels first": ("blocks", "0,1,3,5,2,4", "deep", "1,24,2,2", "SpaceToDepth"),
    "depth to space": ("up", "0,3,4,1,5,2", "wide", "1,6,4,4", "DepthToSpace"),
    "depth to space, channels first": ("crd", "0,1,4,2,5,3", "wide", "1,6,4,4", "DepthToSpace"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_move_becomes_its_operator(move: str, context: Context) -> None:
    first, order, last, y, expected = MOVES[move]
    x = "1,24,2,2" if expected == "DepthToSpace" else "1,6,4,4"
    turned = f"c = Reshape(x, {first}) t = Transpose <perm = [{order}]> (c)"
    graph = graph_of(f"{turned} y = Reshape(t, {last})", x, y)
    array = np.arange(96, dtype=np.float32).reshape([int(n) for n in x.split(",")])
    before = outputs(lower(copy.deepcopy(graph)), {"x": array})["y"]
    assert operators(graph, context) == expected
    np.testing.assert_array_equal(outputs(lower(graph), {"x": array})["y"], before)


def test_every_other_channel_is_a_slice(context: Context) -> None:
    turned = "c = Reshape(x, pairs) t = Transpose <perm = [1,0,2]> (c) p = Reshape(t, halves)"
    parts = "even = Gather(p, first) odd = Gather(p, second) y = Sub(even, odd)"
    graph = graph_of(f"{turned} {parts}", "2,6,4,4", "2,3,4,4")
    array = np.arange(192, dtype=np.float32).reshape(2, 6, 4, 4)
    assert operators(graph, context) == "Slice Slice Sub"
    np.testing.assert_array_equal(outputs(lower(graph), {"x": array})["y"], array[:, 0::2] - array[:, 1::2])


# How the picture is cut, what repeats it, its result, and the operators that are left.
REPEATS = {
    "rows and columns": ("1,6,4,1,4,1", "Expand(c, {1,1,1,2,1,3})", "1,6,8,12", "Resize"),
    "columns, by tiles": ("1,6,4,4,1", "Tile(c, {1,1,1,1,2})", "1,6,4,8", "Resize"),
    "whole rows": ("1,6,1,4,4", "Expand(c, {1,1,2,1,1})", "1,6,8,4", "Reshape Expand Reshape"),
    "channels": ("1,6,1,4,4", "Expand(c, {1,1,2,1,1})", "1,12,4,4", "Reshape Expand Reshape"),
    "rows twice, then cut otherwise": ("1,6,4,1,4", "Expand(c, {1,1,1,2,1})", "1,6,4,8", "Reshape Expand Reshape"),
}


@pytest.mark.parametrize("repeat", REPEATS)
def test_repeated_elements_of_pictures_are_the_nearest_ones(repeat: str, context: Context) -> None:
    cut, wide, y, expected = REPEATS[repeat]
    call, _, counts = wide.partition("{")
    rank = len(cut.split(","))
    body = f"k = Constant <value = int64[{rank}] {{{cut}}}> () c = Reshape(x, k) n = Constant <value = int64[{rank}] "
    body += f"{{{counts.rstrip(')')}> () w = {call}n) s = Constant <value = int64[4] {{{y}}}> () y = Reshape(w, s)"
    graph = graph_of(body, "1,6,4,4", y)
    array = np.arange(96, dtype=np.float32).reshape(1, 6, 4, 4)
    before = outputs(lower(copy.deepcopy(graph)), {"x": array})["y"]
    assert operators(graph, context) == expected
    np.testing.assert_array_equal(outputs(lower(graph), {"x": array})["y"], before)
