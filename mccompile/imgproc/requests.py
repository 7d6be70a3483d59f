"""What is asked for, as functions: `resize=bilinear,rotate=90,roi` and sizes, or why it cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..base.dtypes import DTYPES, f32, u8
from ..base.errors import Problem, WrongUse, raise_all
from ..base.near import meant
from ..base.needless import needless
from .api import CHANNELS, FRACTIONS, LARGEST, ImageFunction, ImageOptions, functions

DTYPE_NAMES = (u8.name, f32.name)


def asked_for(
    dtype: str = "u8",
    size: Sequence[int] | None = None,
    to: Sequence[int] | None = None,
    channels: int | None = None,
    strided: bool = False,
    fraction: int | None = None,
) -> ImageOptions:
    """Raises WrongUse."""
    if dtype not in DTYPE_NAMES:
        why = f"there are {' and '.join(DTYPE_NAMES)}"
        fix = meant(dtype, DTYPE_NAMES, "--dtype") or f"did you mean --dtype {u8.name}?"
        raise WrongUse(Problem(f"elements of pictures cannot be {dtype!r}", "--dtype", why, fix))
    for flag, pair in (("--size", size), ("--to", to)):
        if pair is not None and (len(pair) != 2 or not all(1 <= each <= LARGEST for each in pair)):
            shown = "x".join(map(str, pair))
            inside = "x".join(str(min(max(each, 1), LARGEST)) for each in (*pair, 1, 1)[:2])
            why = f"width and height are 1 to {LARGEST}"
            raise WrongUse(Problem(f"there is no picture of {shown}", flag, why, f"did you mean {flag} {inside}?"))
    if channels is not None and not 1 <= channels <= CHANNELS:
        why, fix = f"1 to {CHANNELS} can be", f"did you mean --channels {min(max(channels, 1), CHANNELS)}?"
        raise WrongUse(Problem(f"a picture cannot have {channels} channels", "--channels", why, fix))
    if fraction is not None and (fraction not in FRACTIONS or dtype != u8.name):
        why = "floats keep all of it" if dtype != u8.name else f"{' and '.join(map(str, FRACTIONS))} bits can be"
        fix = "leave out --fraction" if dtype != u8.name else f"did you mean --fraction {FRACTIONS[fraction < 8]}?"
        raise WrongUse(Problem(f"positions cannot have {fraction} bits behind the point", "--fraction", why, fix))
    return ImageOptions(DTYPES[dtype], _pair(size), _pair(to), channels, strided, fraction or FRACTIONS[0])


def _pair(sizes: Sequence[int] | None) -> tuple[int, int] | None:
    return None if sizes is None else (int(sizes[0]), int(sizes[1]))


def read_size(text: str, flag: str) -> tuple[int, int]:
    """320x240. Raises WrongUse."""
    found = re.fullmatch(r"(\d+)x(\d+)", text.strip())
    if not found:
        numbers = [*re.findall(r"\d+", text), "240"][:2]
        fix = f"did you mean {flag} {'x'.join(numbers if len(numbers) == 2 else ('320', '240'))}?"
        raise WrongUse(
            Problem(f"{text!r} is not a width and height", flag, "write two whole numbers with x between", fix)
        )
    return int(found[1]), int(found[2])


def chosen(texts: Iterable[str], asked: ImageOptions) -> list[ImageFunction]:
    """The functions of `NAME` (all its variants) and `NAME=VARIANT`, each once. Raises WrongUse."""
    found: dict[str, ImageFunction] = {}
    for text in texts:
        for each in _variants(text.strip(), asked):
            found.setdefault(each.symbol, each)
    if not found:
        why = f"there are {', '.join(functions())}"
        raise WrongUse(Problem("no function is named", "", why, "`mccompile imgproc resize -o out`"))
    raise_all(WrongUse, [problem for each in found.values() if (problem := each.refused())])
    read = {name for each in found.values() for name in each.reads}
    unread = [("--to", asked.to, "to_width"), ("--channels", asked.channels, "channels")]
    unread += [("--fraction", asked.fraction if asked.fraction != FRACTIONS[0] else None, "fraction")]
    for flag, value, name in unread:
        if value is not None and name not in read:
            why = f"{', '.join(dict.fromkeys(each.name for each in found.values()))} say it themselves"
            raise WrongUse(Problem(f"{flag} means nothing here", flag, why, f"leave out {flag}"))
    return list(found.values())


def _variants(text: str, asked: ImageOptions) -> list[ImageFunction]:
    name, given, variant = text.partition("=")
    cls = functions().get(name)
    if cls is None:
        without = needless(name, "imgproc")
        usual = f"leave out {name}: {without}" if without else f"name one of them, such as {next(iter(functions()))}"
        fix = meant(name, functions()) or usual
        why = f"there are {', '.join(functions())}"
        raise WrongUse(Problem(f"there is no image function {name!r}", "mccompile imgproc", why, fix))
    if given and variant not in cls.variants:
        why = f"it can be {', '.join(cls.variants)}" if any(cls.variants) else "it has no variants"
        fix = meant(variant, cls.variants) or f"did you mean {next(iter(cls.variants))}?"
        if not any(cls.variants):
            fix = f"`mccompile imgproc {name} -o out`"
        raise WrongUse(Problem(f"{name} cannot be {variant!r}", text, why, fix))
    made = [cls(each, asked) for each in ([variant] if given else cls.variants)]
    fitting = [each for each in made if each.takes(asked.dtype)]
    if not fitting:
        why = "it is defined in bytes"
        raise WrongUse(Problem(f"{text} cannot be {asked.dtype}", f"--dtype {asked.dtype}", why, "leave out --dtype"))
    return fitting
