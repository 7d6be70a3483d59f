"""The contract of an image function: a class in `functions/` and a template of the same name beside it.

A picture is rows of pixels, a pixel is its channels. A size is a number that is written into the code, or a name: then
it is an argument of the C function, which checks it. Invariant: `reference` gives the bits of the C code for u8, and
both are OpenCV's within one step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..base.discovery import import_package_modules
from ..base.dtypes import DType, u8
from ..base.errors import Problem
from ..base.records import dataclass

LARGEST = 32767  # rows and columns of a picture
CHANNELS = 4
FRACTIONS = (10, 5)
SIZES = ("width", "height", "to_width", "to_height", "channels")
_TRIED = dict(zip(SIZES, (14, 10, 7, 6, 3), strict=True))
Size = int | str  # a number, or C

_Class = TypeVar("_Class", bound="type[ImageFunction]")
_FUNCTIONS: dict[str, type[ImageFunction]] = {}


@dataclass(frozen=True)
class ImageOptions:
    """What is known of pictures, for all functions of a library. None: an argument of the function."""

    dtype: DType = u8
    size: tuple[int, int] | None = None  # width, height
    to: tuple[int, int] | None = None
    channels: int | None = None
    strided: bool = False  # rows may lie further apart than they are long, also where sizes are known
    fraction: int = FRACTIONS[0]  # bits behind the point of a position, where bytes are interpolated anywhere

    @property
    def sizes(self) -> dict[str, Size]:
        (width, height), (to_width, to_height) = self.size or (None, None), self.to or (None, None)
        values = (width, height, to_width, to_height, self.channels)
        return {name: name if value is None else value for name, value in zip(SIZES, values, strict=True)}


@dataclass(frozen=True)
class ImageFunction:
    """One variant of a function, for what is known of pictures."""

    variant: str
    asked: ImageOptions

    name: ClassVar[str]
    about: ClassVar[str]
    variants: ClassVar[Mapping[str, str]]  # and what they are
    reads: ClassVar[Sequence[str]] = ("width", "height", "channels")

    @property
    def symbol(self) -> str:
        """Of C, behind the prefix."""
        return f"{self.name}_{self.variant}" if self.variant else self.name

    @property
    def sizes(self) -> dict[str, Size]:
        """Those that it reads."""
        return {name: size for name, size in self.asked.sizes.items() if name in self.reads}

    @property
    def given(self) -> list[str]:
        """Sizes that are arguments."""
        return [name for name, size in self.sizes.items() if isinstance(size, str)]

    @property
    def c(self) -> dict[str, Any]:
        """Sizes that it reads, and elements from one row of the source (x_stride) or the result to the next."""
        found: dict[str, Any] = self.sizes
        for name, (_, row) in (("x_stride", self.source(found)), ("y_stride", self.result(found))):
            found[name] = name if self.asked.strided or isinstance(row, str) else row
        return found

    @property
    def extras(self) -> Mapping[str, str]:
        """Further arguments, and their declarations."""
        return {}

    @property
    def helpers(self) -> Sequence[str]:
        """Of helpers.c.j2."""
        return ()

    def takes(self, dtype: DType) -> bool:
        return True

    def source(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        """Rows of the source, and elements of each."""
        return s["height"], times(s["width"], s["channels"])

    def result(self, s: Mapping[str, Any]) -> tuple[Any, Any]:
        return self.source(s)

    def shapes(self, s: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Of source and result in numpy: rows, columns, channels."""
        return (s["height"], s["width"], s["channels"]), (s["height"], s["width"], s["channels"])

    def scratch(self, s: Mapping[str, Any]) -> Size:
        """Bytes of workspace: of C, or a number where all of `s` are."""
        return 0

    def wrong(self, s: Mapping[str, Any]) -> list[str]:
        """Conditions of C under which sizes that are arguments do not fit."""
        return []

    def refused(self) -> Problem | None:
        """Why sizes that are known do not fit."""
        return None

    def context(self) -> Mapping[str, Any]:
        """What the template sees besides sizes and strides."""
        return {}

    def reference(self, x: np.ndarray, s: Mapping[str, int], **extras: Any) -> np.ndarray:
        """The result in numpy."""
        raise NotImplementedError

    def trial(self) -> dict[str, int]:
        """Sizes that a test takes: those that are known, and some others."""
        known = {name: size for name, size in self.sizes.items() if isinstance(size, int)}
        return {name: size for name, size in _TRIED.items() if name in self.reads} | known

    def tried(self, s: Mapping[str, int]) -> Mapping[str, Any]:
        """Further arguments of a test."""
        return {}

    @property
    def template(self) -> str:
        """The stem of the template."""
        return self.name

    @property
    def template_path(self) -> Path:
        module = Path(str(sys.modules[type(self).__module__].__file__))
        return module.with_name(f"{self.template}.c.j2")


def times(*factors: Any) -> Any:
    """A product: a number where all are."""
    texts = [str(f) for f in factors if isinstance(f, str)]
    number = int(np.prod([f for f in factors if not isinstance(f, str)], dtype=np.int64))
    if not texts:
        return number
    return " * ".join([*([str(number)] if number != 1 else []), *texts])


def term(size: Size) -> Size:
    """A factor or a part of a sum."""
    return f"({size})" if isinstance(size, str) and not size.isidentifier() else size


def less_one(size: Size) -> Size:
    return size - 1 if isinstance(size, int) else f"({size} - 1)"


def steps(step: Size, channels: Size) -> dict[str, Any]:
    """Of moved.c.j2: from one pixel of a row to the next in the source, and where the pixel j of the result lies."""
    return {"step": step, "by": times("j", step), "at": times("j", channels)}


def each(channels: Size) -> Callable[[str], str]:
    """Makes of a statement about channel @ what is to be done for all."""

    def statements(text: str) -> str:
        if isinstance(channels, int):
            return "\n".join(text.replace(" + @", f" + {k}" if k else "").replace("@", str(k)) for k in range(channels))
        return f"for (mcc_index k = 0; k < {channels}; ++k) {text.replace('@', 'k')}"

    return statements


def provided(cls: _Class) -> _Class:
    """Registers a class."""
    _FUNCTIONS[cls.name] = cls
    return cls


@cache
def functions() -> Mapping[str, type[ImageFunction]]:
    """All there are, by name."""
    import_package_modules("mccompile.imgproc.functions")
    return dict(sorted(_FUNCTIONS.items()))
