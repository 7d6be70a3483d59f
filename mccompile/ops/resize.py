"""Resize and Upsample: interpolation along axes, from tables that are made here.

Nearest neighbours are a view where they lie evenly (enlarging by whole numbers repeats elements), else a gather.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.budgets import budgets
from ..base.dims import Dim, bounds, upper
from ..base.dtypes import DType, f32, f64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..kinds.gather import Gather as GatherKind
from ..kinds.resize import Resize as ResizeKind
from ..program.ir import View
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .pad import padded
from .rules.at_run_time import Formula, static_count, static_shape
from .rules.known_shapes import FIX_DIMENSIONS, sizes
from .rules.resize_backward import Sampling
from .rules.resize_computed import (
    ComputedAxis,
    Interpolation,
    check_rounded,
    check_scales,
    common_scale,
    extrapolated,
    known_scale,
    resized_nearest,
    resized_weighted,
    scales_given,
)
from .rules.resize_tables import Axis, coordinates, exact_coordinates, inside, nearest, taps

if TYPE_CHECKING:
    from .rules.backward import Backward

Planned = tuple[Dim, Dim, float | None, Fraction | None]  # before, after, the scale if it is known, and unrounded


@dataclass(frozen=True)
class Resized:
    """How an axis is resized. Without a scale it follows from the sizes."""

    axis: int
    size: Dim
    out: Dim
    scale: float | None
    start: float
    end: float
    ratio: Fraction | None = None  # the scale before it was rounded

    @property
    def known(self) -> Axis | None:
        """The same where everything is known at compile time."""
        if self.scale is None or not (isinstance(self.size, int) and isinstance(self.out, int)):
            return None
        return Axis(self.axis, self.size, self.out, self.scale, self.start, self.end, self.ratio)

    def computed(self) -> ComputedAxis:
        scale = known_scale(self.size, self.out, self.scale, self.ratio)
        return ComputedAxis(self.axis, self.size, self.out, scale, literal(self.start, f32), literal(self.end, f32))


@dataclass(frozen=True)
class Resize(Operator):
    """`nearest_mode` "simple" stands for what opset 10 did: down to the left, or to the right where an axis shrinks."""

    versions = (10, 11, 13, 18, 19)
    channels_last = True
    same_layout = True
    antialias: int = 0
    axes: tuple[int, ...] | None = None
    coordinate_transformation_mode: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 10:
            node.inputs[1:] = [None, *node.inputs[1:]]
            return _simple(node)
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        if self.nearest_mode == "simple":
            return {"mode": self.mode}, 10
        if self.coordinate_transformation_mode == "tf_half_pixel_for_nn":
            return {"mode": self.mode, "nearest_mode": self.nearest_mode} | {
                "coordinate_transformation_mode": self.coordinate_transformation_mode
            }, 11
        return super().to_onnx()[0], None

    # -- which axes change, and how

    def resized(self, site: Site) -> list[Resized | None]:
        """Per axis of x, how it is resized; None where nothing happens."""
        x = site.type(0)
        axes = self.named(x.rank)
        region = self.region(site, len(axes))
        has_scales, has_sizes = (site.has(i) and site.shape(i) != (0,) for i in (2, 3))
        if has_scales == has_sizes:
            raise Invalid("one of scales and sizes must be given, and not both")
        result: list[Resized | None] = [None] * x.rank
        given = site.type(2 if has_scales else 3)
        if given.count != len(axes):
            raise Invalid(f"scales or sizes {given} for {len(axes)} axes of {x}")
        if has_scales:
            plan = self.by_scales(x, axes, site.constant(2, "scales").reshape(-1))
        else:
            plan = self.by_sizes(x, axes, sizes(site, 3, "sizes"))
        for axis, start, end, planned in zip(axes, region[: len(axes)], region[len(axes) :], plan, strict=True):
            if planned is not None:
                size, out, scale, ratio = planned
                result[axis] = Resized(axis, size, out, scale, float(start), float(end), ratio)
                if size == 0 and out != 0:
                    raise Invalid(f"axis {axis} of {x} is empty and cannot be resized to {out}")
                if has_scales and end - start != 1 and out != size:
                    raise Unsupported("scales together with a region of interest", "give sizes instead of scales")
        return result

    def named(self, rank: int) -> list[int]:
        axes = [normal_axis(axis, rank) for axis in (range(rank) if self.axes is None else self.axes)]
        if len(set(axes)) != len(axes):
            raise Invalid(f"an axis is named twice in {self.axes}")
        return axes

    def region(self, site: Site, count: int) -> np.ndarray:
        """Starts and ends of the region of interest; all of x except for tf_crop_and_resize."""
        if self.coordinate_transformation_mode != "tf_crop_and_resize":
            return np.repeat([0.0, 1.0], count)
        roi = site.constant(1, "roi").reshape(-1)
        if len(roi) != 2 * count:
            raise Invalid(f"roi has {len(roi)} elements for {count} axes")
        return roi.astype(np.float64)

    def by_scales(self, x: TensorType, axes: list[int], scales: np.ndarray) -> list[Planned | None]:
        plan: list[Planned | None] = []
        for axis, scale in zip(axes, scales.astype(np.float32), strict=True):
            if not 0 < scale < np.inf:
                raise Invalid(f"scale {scale} of axis {axis} is not positive")
            if scale == 1 and self.coordinate_transformation_mode != "tf_crop_and_resize":
                plan.append(None)
                continue
            plan.append((x.shape[axis], _scaled(x.shape[axis], scale), float(scale), None))
        return plan

    def by_sizes(self, x: TensorType, axes: list[int], wanted: tuple[Dim, ...]) -> list[Planned | None]:
        policy = self.keep_aspect_ratio_policy
        if policy not in ("stretch", "not_larger", "not_smaller"):
            raise Invalid(f"keep_aspect_ratio_policy {policy!r} is not stretch, not_larger or not_smaller")
        plan: list[Planned | None] = []
        crop = self.coordinate_transformation_mode == "tf_crop_and_resize"
        if policy == "stretch":
            for axis, out in zip(axes, wanted, strict=True):
                size = x.shape[axis]
                if out == size and not crop:
                    plan.append(None)
                elif isinstance(size, int) and isinstance(out, int):
                    ratio = Fraction(out, max(size, 1))
                    plan.append((size, out, float(np.float32(out) / np.float32(max(size, 1))), ratio))
                else:
                    plan.append((size, out, None, None))
            return plan
        known = [(_known(x.shape[axis]), _known(out)) for axis, out in zip(axes, wanted, strict=True)]
        scales = [np.float32(out) / np.float32(max(size, 1)) for size, out in known]
        number_, scale = (min if policy == "not_larger" else max)(enumerate(scales), key=lambda entry: entry[1])
        ratio = Fraction(known[number_][1], max(known[number_][0], 1))
        return [
            (size, int(np.floor(np.float32(size) * scale + np.float32(0.5))), float(scale), ratio) for size, _ in known
        ]

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if self.mode not in ("nearest", "linear", "cubic"):
            raise Invalid(f"mode {self.mode!r} is not nearest, linear or cubic")
        if self.antialias and self.mode == "nearest":
            raise Invalid("antialias is defined for linear and cubic only")
        if self.is_computed(site):
            most = [None if axis in self.named(x.rank) else dim for axis, dim in enumerate(static_shape(x))]
            found = site.open_shape(0, "a scale, a size or the region", most, x.shape)
            declared = tuple(n if isinstance(n, int) else kept or n for n, kept in zip(found, most, strict=True))
            if len(declared) != x.rank or any(a == 0 and b != 0 for a, b in zip(x.shape, declared, strict=True)):
                raise Invalid(f"{x} is not resized to {declared}, which the model declares")
            return [Fact(TensorType(x.dtype, declared))]
        shape = list(x.shape)
        for axis in self.resized(site):
            if axis is not None:
                shape[axis.axis] = axis.out
                _check_table(axis.axis, upper(axis.out))
                trial = Axis(axis.axis, upper(axis.size), upper(axis.out), axis.scale or 1.0)
                coordinates(self.coordinate_transformation_mode, trial)
                nearest(np.zeros(0), trial, self.nearest_mode)
                if self.antialias and axis.known is None:
                    raise Unsupported(f"dimension {axis.size} is resized with antialias", FIX_DIMENSIONS)
        return [Fact(TensorType(x.dtype, tuple(shape)))]

    # -- where scales, sizes or the region are computed at run time

    def is_computed(self, site: Site) -> bool:
        if self.coordinate_transformation_mode == "tf_crop_and_resize" and site.fact(1).constant is None:
            return True
        if site.has(2) and site.shape(2) != (0,):
            return site.fact(2).constant is None
        return not site.is_known(3)

    def computed(self, to: Lowering, x: View) -> View:
        formula, site = Formula(to), to.site
        before, after, named = x.type.static_shape, to.type().shape, self.named(len(x.shape))
        by_scales = site.has(2) and site.shape(2) != (0,)
        if static_count(site.type(2 if by_scales else 3)) != len(named):
            raise Invalid(f"scales or sizes do not fit axes {named}")
        crop = self.coordinate_transformation_mode == "tf_crop_and_resize"
        if crop and static_count(site.type(1)) != 2 * len(named):
            raise Invalid(f"roi {site.type(1)} does not fit {len(named)} axes")
        if by_scales:
            scales = scales_given(formula, 2, [(before[axis], after[axis]) for axis in named])
        elif self.keep_aspect_ratio_policy == "stretch":
            for axis, size in zip(named, formula.elements(3), strict=True):
                formula.settle(after[axis], size)
            scales = [known_scale(before[axis], after[axis]) for axis in named]
        else:
            sizes_before = [before[axis] for axis in named]
            scales = [common_scale(formula, 3, sizes_before, self.keep_aspect_ratio_policy)] * len(named)
        axes = []
        for n, (axis, scale) in enumerate(zip(named, scales, strict=True)):
            ends = (cast(formula.raw(1, n + part * len(named)), f32) for part in range(2)) if crop else _WHOLE
            axes.append(ComputedAxis(axis, before[axis], after[axis], scale, *ends))
        if by_scales:
            check_scales(formula, axes)
        elif self.keep_aspect_ratio_policy != "stretch":
            check_rounded(formula, axes)
        formula.check()
        if any(before[axis] != after[axis] for axis in range(len(before)) if axis not in named):
            raise Invalid(f"only axes {named} of {x.type} are resized")
        moving = [axis for axis in axes if crop or not axis.size == axis.out == 1]
        return self.moved(formula, x, moving)

    def moved(self, formula: Formula, x: View, moving: list[ComputedAxis]) -> View:
        """Where the tables are computed at run time."""
        if not moving:
            return x
        mode = self.coordinate_transformation_mode
        if self.mode == "nearest":
            result = resized_nearest(formula, x, moving, mode, self.nearest_mode)
        else:
            how = Interpolation(self.mode, mode, self.cubic_coeff_a, bool(self.exclude_outside), bool(self.antialias))
            accumulator = _accumulator(x.buffer.dtype)
            result = resized_weighted(formula, x, moving, how, accumulator, _rounded(accumulator, x.buffer.dtype))
        if mode == "tf_crop_and_resize":
            value = literal(_element(self.extrapolation_value, x.buffer.dtype), x.buffer.dtype)
            result = extrapolated(formula, result, moving, mode, value)
        return result

    # -- what computes it

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if type.count == 0:
            to.set(0, to.nothing(type))
            return
        if self.is_computed(to.site):
            to.set(0, self.computed(to, x))
            return
        resized = [axis for axis in self.resized(to.site) if axis is not None]
        axes = [axis.known for axis in resized if axis.known is not None]
        if len(axes) != len(resized):
            to.set(0, self.moved(Formula(to), x, [axis.computed() for axis in resized]))
            return
        exact = self.mode == "nearest" and self.nearest_mode.startswith("round")
        found = exact_coordinates if exact else coordinates
        places = {axis.axis: found(self.coordinate_transformation_mode, axis) for axis in axes}
        before, after = [0] * len(x.shape), [0] * len(x.shape)
        if self.coordinate_transformation_mode == "tf_crop_and_resize":
            for axis in axes:
                first, end = inside(places[axis.axis], axis)
                before[axis.axis], after[axis.axis] = first, axis.out - end
                places[axis.axis] = places[axis.axis][first:end]
        if any(len(place) == 0 for place in places.values()):  # nothing of the result lies on x
            to.set(0, to.map(literal(_element(self.extrapolation_value, type.dtype), type.dtype), [], type.shape))
            return
        result = self.nearest(to, x, axes, places) if self.mode == "nearest" else self.weighted(to, x, axes, places)
        if any((*before, *after)):
            value = to.constant(np.array(_element(self.extrapolation_value, type.dtype)).astype(type.dtype.numpy))
            result = padded(to, result, before, after, value=value)
        to.set(0, result)

    def nearest(self, to: Lowering, x: View, axes: list[Axis], places: dict[int, np.ndarray]) -> View:
        tables: dict[int, np.ndarray] = {}  # by axis
        times: dict[int, int] = {}
        for axis in axes:
            table = nearest(places[axis.axis], axis, self.nearest_mode)
            repeats = len(table) // axis.size if len(table) % axis.size == 0 else 0
            steps = np.diff(table)
            if len(table) == 1 or (steps == steps[0]).all():
                x = x.sliced(axis.axis, int(table[0]), len(table), int(steps[0]) if len(steps) else 1)
            elif repeats and (table == np.arange(len(table)) // repeats).all():
                times[axis.axis] = repeats
            else:
                tables[axis.axis] = table
        x = _repeated(to, x, times)
        if not tables:
            return x
        shape = tuple(len(tables[axis]) if axis in tables else dim for axis, dim in enumerate(x.shape))
        ins = [x]
        for place, table in tables.items():
            around = [1] * len(shape)
            around[place] = len(table)
            ins.append(to.constant(table.reshape(around), "places").broadcast_to(shape))
        order = list(tables)
        numbers = tuple(-1 - order.index(axis) if axis in tables else axis for axis in range(len(shape)))
        return to.call(GatherKind(numbers, in_range=True), ins, TensorType(x.buffer.dtype, shape))[0]

    def weighted(self, to: Lowering, x: View, axes: list[Axis], places: dict[int, np.ndarray]) -> View:
        dtype = x.buffer.dtype
        accumulator = _accumulator(dtype)
        ins = [x]
        counts = []
        shape = list(x.shape)
        for axis in axes:
            positions, weights = taps(
                places[axis.axis],
                axis,
                self.mode,
                self.cubic_coeff_a,
                bool(self.exclude_outside),
                bool(self.antialias),
            )
            used = [n for n in range(positions.shape[1]) if weights[:, n].any()] or [0]
            counts.append(len(used))
            shape[axis.axis] = len(positions)
            ins.append(to.constant(np.ascontiguousarray(positions[:, used]), "positions"))
            ins.append(to.constant(weights[:, used].astype(accumulator.numpy), "weights"))
        if not axes:
            return x
        kind = ResizeKind(tuple(a.axis for a in axes), tuple(counts), accumulator, _rounded(accumulator, dtype))
        return to.call(kind, ins, TensorType(dtype, tuple(shape)))[0]

    def gradient(self, back: Backward) -> None:
        if self.is_computed(back.site):
            back.refuse("scales, sizes or a region computed at run time have no rule", "make them constants")
        Sampling.of(self).back(back, [axis.known for axis in self.resized(back.site) if axis is not None])


_WHOLE = (literal(0, f32), literal(1, f32))


def _check_table(axis: int, out: int) -> None:
    most = budgets().table
    if out > most:
        raise Unsupported(f"axis {axis} is resized to {out} elements, {most} are the most", "correct scales or sizes")


def _accumulator(dtype: DType) -> DType:
    return f64 if dtype is f64 or (not dtype.is_float and dtype.bits >= 32) else f32


def _scaled(size: Dim, scale: np.float32) -> Dim:
    """The size after resizing, as ONNX rounds it. Of a size that is known only at run time it has to be a fraction that
    gives the same for all sizes there can be."""

    def rounded(size: int) -> int:
        return int(np.floor(np.float32(size) * scale))

    if isinstance(size, int):
        return rounded(size)
    low, high = bounds(size)
    fraction = Fraction(float(scale)).limit_denominator(1000)
    up, down = fraction.numerator, fraction.denominator
    if any(rounded(number) != number * up // down for number in range(low, high + 1)):
        raise Unsupported(f"dimension {size} times {scale} is not a fraction of it", FIX_DIMENSIONS)
    return size * up // down


def _known(dim: Dim) -> int:
    if not isinstance(dim, int):
        raise Unsupported(f"dimension {dim} is resized and known only at run time", FIX_DIMENSIONS)
    return dim


def _element(value: float, dtype: DType) -> float | int:
    return value if dtype.is_float else int(value)


def _repeated(to: Lowering, x: View, times: dict[int, int]) -> View:
    """Each element of some axes that many times in a row, in one copy."""
    if not times:
        return x
    cut: list[Dim] = []
    wide: list[Dim] = []
    for axis, dim in enumerate(x.shape):
        cut += [dim, 1] if axis in times else [dim]
        wide += [dim, times[axis]] if axis in times else [dim]
    shape = tuple(dim * times.get(axis, 1) for axis, dim in enumerate(x.shape))
    return to.reshape(to.reshape(x, tuple(cut)).broadcast_to(tuple(wide)), shape)


def _rounded(accumulator: DType, dtype: DType) -> Expr | None:
    """From the sum to an element: integers are rounded and saturated."""
    element = operand(0, accumulator)
    if dtype is accumulator:
        return None
    if dtype.is_float:
        return cast(element, dtype)
    bounded = apply("max", apply("round_even", element), literal(dtype.low, accumulator))
    return cast(apply("min", bounded, literal(dtype.high, accumulator)), dtype)


def _simple(node: OnnxNode) -> Operator:
    """Resize as it was up to opset 10: no coordinates to choose."""
    mode = node.attributes.pop("mode", "nearest")
    if node.attributes:
        raise Invalid(f"{node.name} has no attribute {', '.join(node.attributes)} in this opset")
    scales = node.inputs[2].constant if len(node.inputs) > 2 and node.inputs[2] is not None else None
    how = "simple"
    if mode != "nearest" or (scales is not None and (scales.array >= 1).all()):
        how = "floor"
    elif scales is not None and (scales.array <= 1).all():
        how = "ceil"
    return Resize(mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode=how)


@dataclass(frozen=True)
class Upsample(Operator):
    """The first name of Resize, which it becomes."""

    no_gradient = "it is read as Resize"
    versions = (7, 9, 10)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("scales", 1, np.float32)
        given = node.inputs[1].constant if len(node.inputs) > 1 and node.inputs[1] is not None else None
        if given is not None and (given.array < 1).any():
            why = f"scales {given.array.reshape(-1).tolist()} are below 1, and Upsample makes nothing smaller"
            raise Invalid(why, "export the model with Resize, which came with opset 10")
        node.inputs[1:] = [None, *node.inputs[1:]]
        if node.attributes.get("mode") == "bilinear":
            node.attributes["mode"] = "linear"
        return _simple(node)
