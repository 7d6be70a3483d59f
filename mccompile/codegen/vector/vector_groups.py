"""Output channels or columns cut into tiles of vectors.

Invariant: the groups cover each channel once, and only the last one has lanes that do not count.
"""

from __future__ import annotations

from ...base.dtypes import DType, f32, f64
from ...base.records import dataclass
from ...expr.scalar_c import literal_c
from ...expr.vector_c import mask_of
from ...kernels.work import Units
from ...kinds.normalize import Normalize
from ...program.ir import Call
from ...targets.api import Target
from ..tiles import Range
from .vector_loops import Chunk
from .vector_tiles import TileSize, vector_headers, vector_registers

AT_ONCE = 4  # vectors that do not wait for each other, where there are registers for them


@dataclass(frozen=True)
class Groups:
    """Channels cut into tiles: whole ones, then one with the vectors that are left over or whose last is not full."""

    size: TileSize
    channels: int

    def parts(self) -> list[tuple[int, int, int, int]]:
        """Runs of equal tiles: first channel, end, vectors per tile, and lanes that count in the last of them."""
        lanes, vectors = self.size.lanes, self.size.vectors
        wanted = self.padded // lanes
        last = lanes - (self.padded - self.channels)
        rest = wanted % vectors or (vectors if last < lanes else 0)
        whole = (wanted - rest) * lanes
        found = [(0, whole, vectors, lanes)] if whole else []
        return [*found, (whole, self.padded, rest, last)] if rest else found

    def chunks(self, vectors: int, last: int) -> list[Chunk]:
        """The vectors of a tile, of which the last has `last` lanes that count."""
        return [Chunk("", last if vector == vectors - 1 else self.size.lanes) for vector in range(vectors)]

    @property
    def padded(self) -> int:
        return -(-self.channels // self.size.lanes) * self.size.lanes

    def headers(self, counter: str, units: Units | None = None) -> list[str]:
        """C that opens the loop over the tiles of each part, whose first channel the counter is; with units, over those
        of a piece of the work."""
        found = []
        for begin, end, vectors, _ in self.parts():
            step = vectors * self.size.lanes
            tiles = (end - begin) // step
            if units is not None:
                found.append(units.loop(counter, begin, step, tiles, vectors))
            elif tiles == 1:
                found.append(f"{{\nconst mcc_index {counter} = {begin};")
            else:
                found.append(Range(counter, end, str(begin), step=step).header)
        return found


def vectors_at_once(lanes: int, target: Target, dtype: DType = f32) -> int:
    """How many vectors of such a loop are worked on together: each needs some registers besides its sums."""
    return max(1, min(AT_ONCE, vector_registers(lanes, target, dtype) // 4))


def in_type(dtype: DType, lanes: int) -> dict[str, object]:
    """What the templates of groups are told of the floats of their vectors."""
    double = dtype is f64
    return {
        "vector": f"mcc_{dtype}x{lanes}",
        "of": f"{dtype}x{lanes}",
        "lanes": lanes,
        "mask": mask_of(dtype),
        "type": dtype.compute_c,
        "f": "" if double else "f",
        "zero": literal_c(0, dtype),
        "one": literal_c(1, dtype),
        "exponent": "mcc_exp_" if double else "mcc_exp_below_",  # of what is at most 0
    }


def measure_headers(call: Call) -> frozenset[str]:
    """The headers that templates of groups need."""
    dtype = call.of(Normalize).accumulator
    return vector_headers(call, dtype) | {"math.h", f"mcc_vecmath{'_doubles' if dtype is f64 else ''}.h"}


def joins(count: int) -> list[tuple[int, int]]:
    """So many numbers become the first of them: which takes which other one, in turn."""
    found, step = [], 1
    while step < count:
        found += [(first, first + step) for first in range(0, count - step, 2 * step)]
        step *= 2
    return found
