"""What an operator is refused for, and what the user says of sizes that follow from data."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ..base.records import dataclass

Bound = tuple[str, tuple[int, ...]]  # name, and the most for each axis or one number for all: what --bound says


class Refused(Exception):
    """An operator cannot be typed or compiled as it stands here; `bound` is what of --bound would do."""

    def __init__(self, why: str, fix: str = "", bound: Bound | None = None) -> None:
        super().__init__(why)
        self.why, self.fix, self.bound = why, fix, bound


class Invalid(Refused):
    """The model contradicts itself or the ONNX standard."""


class Unsupported(Refused):
    """The model is right, but this cannot be compiled."""


_FREE_AXES = 3


@dataclass(frozen=True)
class Limit:
    """What the user says of sizes of a result that follow from data: the most for each axis, or one for all alike."""

    sizes: tuple[int | None, ...] = ()
    name: str = ""  # of the result
    otherwise: int | None = None  # for a size that nothing else bounds
    shapes: bool = False  # for those of a shape that is computed too
    declared: tuple[int | None, ...] = ()  # what the file says of some of the sizes

    def most(self, axis: int) -> int | None:
        if len(self.sizes) == 1:
            return self.sizes[0]
        return self.sizes[axis] if axis < len(self.sizes) else None

    def shared(self, axes: int) -> int | None:
        """What bounds each of several sizes of one result that nothing else bounds: so that it has no more elements
        than one of three such sizes."""
        if self.otherwise is None or axes <= _FREE_AXES:
            return self.otherwise
        return max(most for most in range(1, self.otherwise + 1) if most**axes <= self.otherwise**_FREE_AXES)


def bound_flag(name: str, sizes: Iterable[int]) -> str:
    most = "x".join(map(str, sizes))
    return "--bound " + shlex.quote(f"{name}={most}")


def unbounded(what: str, name: str, nothing: str = "nothing says how large it can be") -> Unsupported:
    """A size that follows from data, with what the user can say of it."""
    return Unsupported(f"{what}, and {nothing}", f"say it: {bound_flag(name, (100,))}", (name, (100,)))


class Undeclared(Unsupported):
    """A shape follows from data, and the model does not declare it."""
