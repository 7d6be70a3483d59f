"""DFT and STFT: Fourier transforms along an axis, and of windows that slide over a signal.

Frames of a signal are a view that overlaps itself, so they cost nothing. Where the axis, a length or the step is
computed at run time, the shape that the model declares says what it can be, and the run chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..base.dims import Dim, upper
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, index
from ..kinds.dft import Dft as DftKind
from ..kinds.dft import work_type
from ..program.ir import If, Stop, View
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .control_flow import copy_into
from .rules.at_run_time import Formula, both, clamped, equals, from_front, gathered, number
from .rules.known_shapes import FIX_DIMENSIONS, scalar

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Transform:
    axis: int
    length: int


@dataclass(frozen=True)
class DFT(Operator):
    """Operands: x, dft_length, axis."""

    no_gradient = "a Fourier transform has no rule for its gradient"
    versions = (17, 20)
    inverse: int = 0
    onesided: int = 0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 20:
            node.attributes.setdefault("axis", 1)
            node.attribute_to_input("axis", 2)
        return make(cls, node)

    def kind(self, length: int) -> DftKind:
        return DftKind(length, bool(self.inverse), bool(self.onesided))

    @property
    def to_real(self) -> bool:
        return bool(self.inverse and self.onesided)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.rank < 2 or x.shape[-1] not in (1, 2) or not x.dtype.is_float:
            raise Invalid(f"x {x} is not of real or complex numbers: its last axis has their parts")
        if self.onesided and x.shape[-1] != (2 if self.inverse else 1):
            raise Invalid(f"x {x} is {'real' if self.inverse else 'complex'}, which a onesided transform cannot be of")
        choices = self.choices(site)
        if not choices:
            raise Invalid("no axis and length lead to the shape that the model declares")
        return [Fact(TensorType(x.dtype, self.shape(site, choices[0])))]

    def shape(self, site: Site, transform: Transform) -> tuple[Dim, ...]:
        x, axis = site.shape(0), transform.axis
        parts = 1 if self.to_real else 2
        return (*x[:axis], self.kind(transform.length).bins, *x[axis + 1 : -1], parts)

    def choices(self, site: Site) -> list[Transform]:
        """What it can be: one transform where nothing is computed at run time."""
        rank = site.type(0).rank
        if not site.has(2):
            axes = [rank - 2]
        elif site.is_known(2):
            axis = scalar(site, 2, "the axis")
            if not isinstance(axis, int):
                raise Unsupported(f"the axis is {axis}", FIX_DIMENSIONS)
            axes = [normal_axis(axis, rank)]
            if axes[0] == rank - 1:
                raise Invalid(f"axis {axis} is the one of real and imaginary parts")
        else:
            axes = list(range(rank - 1))
        found = [Transform(axis, length) for axis in axes for length in self.lengths(site, axis)]
        if site.is_known(1, 2):
            return found
        wanted = site.declared(0, "the axis" if site.is_known(1) else "dft_length")
        return [transform for transform in found if self.shape(site, transform) == wanted]

    def lengths(self, site: Site, axis: int) -> list[int]:
        size = site.shape(0)[axis]
        if not site.has(1):
            if not isinstance(size, int):
                raise Unsupported(f"the transform is of {size} numbers, known only at run time", FIX_DIMENSIONS)
            given: list[Dim] = [2 * (size - 1) if self.to_real else size]
        elif site.is_known(1):
            given = [scalar(site, 1, "dft_length")]
        else:
            declared = site.declared(0, "dft_length")
            bins = declared[axis] if axis < len(declared) else 0
            given = [2 * bins - 2, 2 * bins - 1] if self.onesided and not self.inverse else [bins]
            given = [length for length in given if isinstance(length, int) and length > 0]
        lengths = [length for length in given if isinstance(length, int)]
        if len(lengths) != len(given):
            raise Unsupported(f"dft_length is {given[0]}, known only at run time", FIX_DIMENSIONS)
        if site.is_known(1, 2) and min(lengths) < 1:
            raise Invalid(f"the length {lengths[0]} is not positive")
        return [length for length in lengths if length > 0]

    def lower(self, to: Lowering) -> None:
        # the result is there now, so what it follows from need not be declared
        choices = self.choices(replace(to.site, results=(to.type(),)))

        def transformed(choice: Transform) -> View:
            x = to.input(0)
            rank, axis = len(x.shape), choice.axis
            order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
            made = dft(to, self.kind(choice.length), x.permuted(order))
            return made.permuted([order.index(a) for a in range(rank)])

        if to.site.is_known(1, 2):
            to.set(0, transformed(choices[0]))
            return
        rank = to.site.type(0).rank

        def asked(formula: Formula, choice: Transform) -> Expr:
            conditions = []
            if to.has(2) and not to.site.is_known(2):
                conditions.append(equals(from_front(formula.element(2), rank), choice.axis))
            if to.has(1) and not to.site.is_known(1):
                conditions.append(equals(formula.element(1), choice.length))
            return both(conditions)

        to.set(0, one_of(to, choices, asked, transformed))


@dataclass(frozen=True)
class STFT(Operator):
    """Operands: signal, frame_step, window, frame_length."""

    no_gradient = "a Fourier transform has no rule for its gradient"
    versions = (17,)
    onesided: int = 1

    def kind(self, length: int) -> DftKind:
        return DftKind(length, False, bool(self.onesided))

    def infer(self, site: Site) -> list[Fact]:
        signal = site.type(0)
        real = signal.rank == 2 or (signal.rank == 3 and signal.shape[2] == 1)
        if not signal.dtype.is_float or not (real or (signal.rank == 3 and signal.shape[2] == 2)):
            raise Invalid(f"the signal {signal} is not [batch, length, parts] of real or complex numbers")
        if self.onesided and not real:
            raise Invalid("a complex signal has no onesided transform")
        if site.has(2) and (site.type(2).dtype is not signal.dtype or site.type(2).rank != 1):
            raise Invalid(f"the window {site.type(2)} is not a vector of {signal.dtype}")
        batch, size = signal.shape[:2]
        if not isinstance(size, int) and not site.is_known(1, 3):
            what = "how it is cut into frames is computed"
            raise Unsupported(f"the signal is {size} long, known only at run time, and {what}", FIX_DIMENSIONS)
        length = self.lengths(site, size)[0]
        frames: Dim
        if site.is_known(1):
            frames = (size - length) // self.step(site) + 1
        else:
            declared = site.declared(0, "frame_step")
            frames = declared[1] if len(declared) == 4 else 0
            if not 1 <= frames <= upper(size) - length + 1:
                raise Invalid(f"the model declares {declared}, which no step leads to")
        return [Fact(TensorType(signal.dtype, (batch, frames, self.kind(length).bins, 2)))]

    def step(self, site: Site) -> int:
        step = scalar(site, 1, "frame_step")
        if not isinstance(step, int):
            raise Unsupported(f"frame_step is {step}, known only at run time", FIX_DIMENSIONS)
        if step < 1:
            raise Invalid(f"frame_step {step} is not positive")
        return step

    def lengths(self, site: Site, size: Dim) -> list[int]:
        """How long a frame can be: one number where nothing is computed at run time."""
        window = site.shape(2)[0] if site.has(2) else None
        if window is not None and not isinstance(window, int):
            raise Unsupported(f"the window is {window} long, known only at run time", FIX_DIMENSIONS)
        if site.has(3) and site.is_known(3):
            length = scalar(site, 3, "frame_length")
            if window is not None and window != length:
                raise Invalid(f"the window has {window} numbers, a frame {length}")
            found = [length] if isinstance(length, int) else []
        elif window is not None or not site.has(3):
            if window is None and not isinstance(size, int):
                raise Unsupported(f"a frame is {size} long, known only at run time", FIX_DIMENSIONS)
            found = [_static(size) if window is None else window]
        else:
            declared = site.declared(0, "frame_length")
            bins = declared[2] if len(declared) == 4 else 0
            found = [2 * bins - 2, 2 * bins - 1] if self.onesided else [bins]
            found = [length for length in found if 1 <= length <= upper(size)]
        if not found or not all(1 <= length <= upper(size) for length in found):
            raise Invalid(f"no frame of {found or 'the declared length'} fits into a signal of {size}")
        return found

    def lower(self, to: Lowering) -> None:
        signal, type = to.input(0), to.type()
        if len(signal.shape) == 2:
            signal = to.reshape(signal, (*signal.shape, 1))
        batch, size, parts = signal.shape
        site = replace(to.site, results=(type,))
        frames = type.shape[1]
        window = [to.input(2)] if to.has(2) else []

        def transformed(length: int) -> View:
            shape = (batch, frames, length, parts)
            if site.is_known(1):
                across, along, inside = signal.strides
                sliding = replace(signal, shape=shape, strides=(across, along * self.step(site), along, inside))
                return dft(to, self.kind(length), sliding, *window)
            formula = Formula(to)
            start = apply("mul", index(0), formula.element(1))
            places = formula.map(clamped(apply("add", start, index(1)), 0, _static(size) - 1), (frames, length))
            spread = to.reshape(places, (1, frames, length, 1)).broadcast_to(shape)
            every = to.reshape(signal, (batch, 1, size, parts)).broadcast_to((batch, frames, size, parts))
            return dft(to, self.kind(length), gathered(to, every, {2: spread}, shape), *window)

        lengths = self.lengths(site, size)
        if site.is_known(1, 3):
            to.set(0, transformed(lengths[0]))
            return

        def asked(formula: Formula, length: int) -> Expr:
            conditions = []
            if not site.is_known(1):
                step = formula.element(1)
                fitting = apply("add", apply("div", number(size - length), step), number(1))
                conditions += [apply("greater", step, number(0)), apply("equal", fitting, number(_static(frames)))]
            if not site.is_known(3):
                conditions.append(equals(formula.element(3), length))
            return both(conditions)

        to.set(0, one_of(to, lengths, asked, transformed))


def _static(dim: Dim) -> int:
    assert isinstance(dim, int)
    return dim


def dft(to: Lowering, kind: DftKind, x: View, *window: View) -> View:
    """The transform along the axis before the last."""
    dtype = x.buffer.dtype
    angles = -2 * np.pi * np.arange(kind.length) / kind.length
    roots = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(work_type(dtype).numpy)
    parts = 1 if kind.inverse and kind.onesided else 2
    type = TensorType(dtype, (*x.shape[:-2], kind.bins, parts))
    return to.call(kind, [x, to.constant(roots, "roots_of_one"), *window], type)[0]


def one_of(
    to: Lowering,
    choices: Sequence[Choice],
    asked: Callable[[Formula, Choice], Expr],
    made: Callable[[Choice], View],
) -> View:
    """The result of the choice that is asked for; a run that asks for none of them ends with a status."""
    result, outermost = to.result(0), to.body
    for choice in choices:
        formula = Formula(to)
        condition = formula.map(asked(formula, choice), ())
        region = If(condition, [], [], to.provenance)
        to.body.append(region)
        to.body = region.then
        to.body.append(copy_into(result, made(choice), to))
        to.body = region.otherwise
    to.body.append(Stop("what is computed here is not what the model declares", to.provenance, "SIZE"))
    to.body = outermost
    return result
