"""conv in vectors along output channels, by weights known at run time whose windows have more taps than there are
positions: the gradient of a convolution by its weights, whose batch are the channels of the image.

Blocks of taps are packed and multiplied by all inputs that they meet, while both stay in the caches: tiles are images
of the batch x channels, and each block adds to the sums of all images and positions, which lie in the workspace for one
group of channels at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.base.summation_error import allowed, in_runs
from mccompile.base.tensor import Shape
from mccompile.codegen.cases import RELU_OF_SUM, conv_case, with_picture
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Epilogue, Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import channels_last_refusal
from mccompile.codegen.vector.vector_taps import conv_of
from mccompile.codegen.vector.vector_tiles import (
    Part,
    Pass,
    Taps,
    Tile,
    TileSize,
    best_tile,
    computed_in,
    convolution_refusal,
    is_long,
    row_cycles,
    vector_headers,
)
from mccompile.codegen.windows import Axis, any_axes, known
from mccompile.expr.code import Code
from mccompile.expr.ir import apply, operand
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, terms
from mccompile.kernels.work import Units
from mccompile.kinds.conv import Conv

BLOCK = 128  # products of a sum, about, before its tile is left
SUM = apply("add", operand(0, f32), operand(1, f32))
ONE, THREE = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, f32), Conv((1, 1), (2, 2), (1, 1, 1, 1), 1, f32)


class LongWindows(Kernel):
    kind = Conv
    branches = ""

    def cases(self) -> Sequence[Case]:
        found = [
            _case("3x3", ONE, (16, 1, 9, 11), (16, 1, 9, 11)),
            _case("batch", ONE, (7, 3, 6, 5), (35, 3, 6, 5)),
            _case("strided", THREE, (5, 2, 15, 17), (20, 2, 7, 8)),
            _case("wide_rows", ONE, (19, 2, 4, 90), (9, 2, 4, 90)),
            _case("far_outside", Conv((1, 1), (1, 1), (4, 0, 1, 3), 1, f32), (3, 1, 5, 7), (17, 1, 8, 8)),
            _case("1d", Conv((1,), (1,), (2, 2), 1, f32), (6, 2, 70), (16, 2, 70)),
            _case("3d", Conv((1,) * 3, (1,) * 3, (1,) * 6, 1, f32), (4, 1, 4, 5, 6), (17, 1, 4, 5, 6)),
            _case("dilated", Conv((2, 3), (1, 1), (2, 3, 2, 3), 1, f32), (5, 1, 8, 9), (8, 1, 8, 9)),
        ]
        biased = _case("epilogue", replace(ONE, epilogue=RELU_OF_SUM), (5, 1, 7, 7), (19, 1, 7, 7))
        planar = replace(_case("planar", ONE, (5, 2, 7, 7), (19, 2, 7, 7)), permute_outs={}, permute={})
        return [*found, planar, with_picture(biased), replace(with_picture(biased, (0, 2, 3)), name="epilogue_bias")]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [long_windows]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = conv_of(call)
        reason = convolution_refusal(call, target, packs=True) or channels_last_refusal(call, call.ins[2:], False)
        if reason:
            return No(reason)
        if call.ins[1].buffer.constant is not None or computed_in(call) is not f32:
            return No("only for 32-bit weights known at run time")
        if kind.group != 1:
            return No("only for one group")
        layout = _Layout(call)
        if prod(axis.out for axis in layout.axes) >= layout.taps:
            return No("windows have no more taps than there are positions")
        if in_runs(terms(call), layout.block_terms) > allowed(kind.rounding, terms(call)):
            return No("sums have to be more accurate")
        size = layout.best(target)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            numeric="ulp",
            blocks=(size.lanes, size.points, size.vectors),
            scratch=4 * (layout.packed(size) + layout.sums * size.channels),
            scratch_align=64,
        )

    def cost(self, call: Call, target: Target) -> Cost:
        layout = _Layout(call)
        size, positions, blocks = layout.best(target), prod(axis.out for axis in layout.axes), layout.blocks
        row = row_cycles(size, layout.batch, layout.channels, -(-terms(call) // blocks), target)
        moves = layout.channels * terms(call) * 1.2 + static(call.outs[0].type.count)
        return Cost(positions * blocks * row + moves, code=size.points * size.vectors * 40)

    def rounding(self, call: Call) -> float:
        return in_runs(terms(call), _Layout(call).block_terms)

    def label(self, call: Call) -> str:
        x, w = call.ins[:2]
        window = "x".join(map(str, w.shape[2:]))
        return f"long_windows_{window}_{'x'.join(map(str, x.shape[2:]))}x{x.shape[0]}_{w.shape[0]}"

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        units, layout = Units(), _Layout(call)
        Groups(TileSize(*call.blocks), layout.channels).headers("o", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call).context(TileSize(*call.blocks), self.parameter_names(call)[1])


@dataclass(frozen=True)
class _Group:
    """Equal tiles of channels."""

    header: str
    width: int
    counts: int  # lanes that are packed
    parts: Sequence[Part]
    sums: Sequence[str]
    results: Epilogue


class _Layout:
    """Loops and C of indices for one call. Counters: o first channel of a group, c0 and b0 the first inputs and rows of
    taps of a block, p0.. positions, n images, c inputs, k0.. taps."""

    def __init__(self, call: Call) -> None:
        self.kind, self.call = conv_of(call), call
        self.x, self.w, self.y, self.extras = call.ins[0], call.ins[1], call.outs[0], call.ins[2:]
        kernel, strides = self.w.type.static_shape[2:], [static(step) for step in self.w.strides[2:]]
        window = (kernel, self.kind.strides, self.kind.dilations, self.kind.pads)
        self.axes: list[Axis] = known(any_axes(self.y, self.x, strides, self.extras, *window, join=False))
        self.batch, self.channels, self.inputs = (static(n) for n in (self.x.shape[0], *self.w.shape[:2]))

    @property
    def taps(self) -> int:
        return prod(axis.kernel for axis in self.axes)

    @cached_property
    def rows(self) -> int:
        """Of taps in a block."""
        return -(-self.axes[0].kernel // min(self.axes[0].kernel, max(1, self.taps // BLOCK)))

    @cached_property
    def together(self) -> int:
        """Inputs in a block."""
        return min(self.inputs, -(-BLOCK // self.taps))

    @property
    def blocks(self) -> int:
        return -(-self.axes[0].kernel // self.rows) * -(-self.inputs // self.together)

    @property
    def block_terms(self) -> int:
        return self.together * self.rows * prod(axis.kernel for axis in self.axes[1:])

    @property
    def sums(self) -> int:
        """Of a channel."""
        return self.batch * prod(axis.out for axis in self.axes)

    def packed(self, size: TileSize) -> int:
        return -(-self.block_terms * size.channels // 16) * 16

    def best(self, target: Target) -> TileSize:
        found = best_tile(self.batch, self.channels, self.block_terms, 4 * abs(static(self.x.strides[0])), target)
        return replace(found, together=1)

    def context(self, size: TileSize, names: Sequence[str]) -> dict[str, Any]:
        groups = Groups(size, self.channels)
        headers = groups.headers("o", Units() if self.call.workers > 1 else None)
        taps = [
            Range("c", self.together, named("c0"), named("c_end")),
            Range("k0", self.rows, named("b0"), named("b_end")),
            *(Range(f"k{number}", axis.kernel) for number, axis in enumerate(self.axes) if number),
        ]
        return {
            "groups": [
                self.group(header, size, vectors, lanes, names)
                for header, (_, _, vectors, lanes) in zip(headers, groups.parts(), strict=True)
            ],
            "packed": self.packed(size),
            "sums": self.sums,
            "inputs": self.inputs,
            "together": self.together,
            "first": self.axes[0],
            "rows": self.rows,
            "taps": taps,
            "to": self.in_block(1),
            "w_at": self.w_at,
            "axes": [self.position(number, axis) for number, axis in enumerate(self.axes)],
            "scope": ["o", "float *packed", "float *partial", "c0", "b0", "c_end", "b_end"],
            "positions": [f"{name}{n}" for n in range(len(self.axes)) for name in ("p", "at", "first", "end")],
            "batch": self.batch,
        }

    @property
    def counters(self) -> list[str]:
        return [f"k{number}" for number in range(len(self.axes))]

    @property
    def w_at(self) -> str:
        step, inner = static(self.w.strides[0]), static(self.w.strides[1])
        return index_c([step, step, inner, *(axis.w for axis in self.axes)], ["o", "lane", "c", *self.counters])

    def in_block(self, width: int) -> str:
        """C of the place of a tap among those packed of a block, whose first ones are `c0` and `b0`."""
        kernels = [self.rows, *(axis.kernel for axis in self.axes[1:])]
        steps = [width * prod(kernels[number:]) for number in range(len(kernels) + 1)]
        begun = [Code(f"{named(name)} - {named(begin)}", True) for name, begin in (("c", "c0"), ("k0", "b0"))]
        return index_c(steps, [*begun, *self.counters[1:]])

    def position(self, number: int, axis: Axis) -> dict[str, str]:
        at = named(f"at{number}")
        return {
            "loop": Range(f"p{number}", axis.out).header,
            "origin": axis.origin(f"p{number}"),
            "first": axis.first_tap(at),
            "end": axis.end_tap(at),
        }

    def group(self, header: str, size: TileSize, vectors: int, last: int, names: Sequence[str]) -> _Group:
        width, counts = vectors * size.lanes, (vectors - 1) * size.lanes + last
        whole = self.batch // size.points * size.points
        parts = [
            self.part(first, stop, count, TileSize(size.lanes, count, vectors))
            for first, stop, count in ((0, whole, size.points), (whole, self.batch, self.batch - whole))
            if stop > first
        ]

        def reference(view: View, name: str) -> Reference:
            lane = static(view.strides[1]) if view.shape[1] != 1 else 1 if name == "y" else 0
            steps = [static(step) for step in (view.strides[0], *view.strides[2:])]
            counters = ["n", *(f"p{number}" for number in range(len(self.axes)))]
            return Reference(name, index_c([lane, *steps], ["o", *counters]), 0, lane)

        extras = [reference(view, name) for view, name in zip(self.extras, names[2:], strict=True)]
        results = epilogue_statements(self.kind.epilogue, size.lanes, 1, vectors, last, reference(self.y, "y"), extras)
        sums = [
            f"const mcc_f32x{size.lanes} a0_{vector} = "
            f"mcc_load_f32x{size.lanes}({named('partial')} + {self.place(width, 'n')} + {vector * size.lanes});"
            for vector in range(vectors)
        ]
        return _Group(header, width, counts, parts, sums, results)

    def place(self, width: int, image: str) -> str:
        """C of the index of a sum."""
        extents = [*(axis.out for axis in self.axes), self.batch, 1]
        steps = [width * prod(extents[number + 1 :]) for number in range(len(self.axes) + 1)]
        return index_c(steps, [*(f"p{number}" for number in range(len(self.axes))), image])

    def part(self, first: int, stop: int, count: int, size: TileSize) -> Part:
        image, opens, width = str(first), "{", size.channels
        if stop - first > count:
            image, opens = "n", Range("n", stop, str(first), step=count).header
        loops = [Range("c", self.together, named("c0"), named("c_end"))]
        for number, axis in enumerate(self.axes):
            begin, end = (named(f"{name}{number}") for name in (("first", "end") if number else ("from", "to")))
            loops.append(Range(f"k{number}", axis.kernel if number else self.rows, begin, end))
        ats = [f"at{number}" for number in range(len(self.axes))]
        image_step, input_step = (static(step) for step in self.x.strides[:2])
        x_at = index_c(
            [image_step, input_step, *(a.x for a in self.axes), *(a.x * a.dilation for a in self.axes)],
            [image, "c", *ats, *self.counters],
        )
        taps = Taps(tuple(range(count)), tuple(loops), x_at, self.in_block(width))
        place = Reference("partial", self.place(width, image), width, 1)
        passes = (Pass((), (taps,)),)
        long = is_long(passes, count, size.vectors)
        shape = (size.lanes, count, size.vectors)
        epilogue = epilogue_statements(SUM, *shape, size.lanes, place, [place], long=long)
        return Part(opens, Tile(*shape, image_step, passes, epilogue))


def long_windows(images: int, channels: int, width: int) -> Case:
    kind, shape = replace(ONE, epilogue=RELU_OF_SUM, pads=(1, 0, 0, 1)), (2, 3, width + 1)
    return with_picture(_case(f"{images}_{channels}_{width}", kind, (images, *shape), (channels, *shape)))


def _case(name: str, kind: Conv, x: Shape, w: Shape) -> Case:
    """Batch and output channels lie last, as channels of pictures do."""
    last = (1, *range(2, len(x)), 0)
    return replace(conv_case(name, kind, x, w), permute={0: last, 1: last}, constant=frozenset())
