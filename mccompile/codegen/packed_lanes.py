"""Constant weights of sums in portable C, packed by lanes: factors of neighbouring results lie side by side."""

from __future__ import annotations

import numpy as np

from ..base.marked import marked_name, plain, sized
from .tiles import Tile


def packed_row(lanes: int, tile: Tile) -> int:
    """How many lanes lie side by side in packed weights: those of a few tiles. Tiles without gaps between their steps
    mislead gcc: it makes vectors across the steps of the sum, at a quarter of the speed."""
    blocks, rest = divmod(lanes, tile.lanes)
    if rest or blocks < 2:
        return lanes
    return tile.lanes * next(n for n in range(2, blocks + 1) if blocks % n == 0)


def packed_lane_c(lane: str, lanes: int, row: int, steps: int) -> str:
    """C for the place of a lane's first weight, where rows of so many lanes lie one below the other for all steps of
    the sum."""
    if row == lanes:
        return lane
    name = marked_name(lane) if plain(lane).isidentifier() else f"({lane})"
    return f"{name} / {sized(row)} * {sized(row * steps)} + {name} % {sized(row)}"


def pack_rows(weights: np.ndarray, row: int) -> np.ndarray:
    """Weights [steps of the sum, lanes] as rows."""
    steps, lanes = weights.shape
    return np.ascontiguousarray(weights.reshape(steps, lanes // row, row).transpose(1, 0, 2))
