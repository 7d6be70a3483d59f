"""What stands behind options on the command line, read: sizes, shapes, bounds, budgets, states, places.

Invariant: what cannot be read is a ValueError that says what it should have been.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from .base.meanings import ours
from .base.near import near
from .base.own_functions import OwnFunction, own_function
from .base.quantizing import Recipe
from .base.streaming import Stream
from .importers.joining import Prepended
from .passes.api import ALL
from .passes.io.io_forms import InputForm, OutputForm, parse_input, parse_output
from .targets.api import LEAST, POOL_NAME, Pool, fastest_first

V = TypeVar("V")


def _named(texts: Iterable[str]) -> list[str]:
    """What stands in them as NAME=..., with commas between; a name may have commas of its own."""
    found: list[str] = []
    for text in texts:
        waiting: list[str] = []
        for part in text.split(","):
            waiting.append(part)
            if "=" in part or not part:
                found.append(",".join(waiting))
                waiting = []
        found += waiting
    return found


def _dim(text: str, whole: str) -> tuple[str, tuple[int, int]]:
    """`whole` is what `text` stands in, with commas between."""
    name, equals, size = text.rpartition("=")
    low, _, high = size.partition("..")
    try:
        found = name, (int(low), int(high or low))
    except ValueError:
        found = "", (0, 0)
    if not equals or not found[0]:
        likely = whole.replace(text, _likely_dim(text), 1)
        raise ValueError(f"{text!r} is not NAME=SIZE or NAME=LOW..HIGH; did you mean --dim {likely}?")
    first, last = found[1]
    if size.endswith(".."):
        raise ValueError(f"{text!r} has no largest size; did you mean --dim {name}={first}..{max(first, 8)}?")
    if first < 0 or last < first:
        why = "a size is not negative" if min(first, last) < 0 else "a range goes from the smallest size to the largest"
        likely = f"{last}..{first}" if first > last >= 0 else "1"
        raise ValueError(f"{text!r} is not a size: {why}; did you mean --dim {name}={likely}?")
    return found


def _likely_dim(text: str) -> str:
    """`8`, `batch`, `batch:8`, `batch=1-8` and the like as they are written here."""
    parts = re.fullmatch(r"([A-Za-z_][^=:]*)?[=:]?(.*)", text)
    assert parts is not None
    numbers = re.findall(r"\d+", parts[2] if parts[2] else "")
    is_range = len(numbers) == 2 and "." not in parts[2].replace("..", "")
    return f"{parts[1] or 'batch'}={'..'.join(numbers) if is_range else numbers[0] if numbers else '1'}"


def _once(read: Callable[[str], tuple[str, V]], texts: Iterable[str], flag: str) -> dict[str, V]:
    """What each name stands for. One that stands there again with another value is a mistake: only one would hold."""
    found: dict[str, V] = {}
    said: dict[str, str] = {}
    for text in texts:
        name, value = read(text)
        if name in found and found[name] != value:
            both = f"{said[name]},{text.partition('=')[2]}" if flag in ("--input", "--output") else said[name]
            why = f"{text!r} says something else of {name!r} than {said[name]!r}"
            raise ValueError(f"{why}; did you mean {flag} {both}?")
        found[name], said[name] = value, text
    return found


def dims(texts: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Each may hold several, with commas between."""
    whole = [(part, text) for text in texts for part in _named([text])]
    return _once(lambda part: _dim(part, next(text for one, text in whole if one == part)), dict(whole), "--dim")


def _bound(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    parts = sizes.split("x")
    if not equals or not name or not all(part.isdecimal() for part in parts):
        likely = re.sub(r"\D+", "x", sizes).strip("x") or "100"
        hint = f"; did you mean --bound {name or (text if not text.isdecimal() else 'NAME')}={likely}?"
        raise ValueError(f"{text!r} is not NAME=COUNT or NAME=COUNTxCOUNT{hint}")
    return name, tuple(int(part) for part in parts)


def bounds(texts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    return _once(_bound, _named(texts), "--bound")


def states(texts: tuple[str, ...]) -> dict[str, str]:
    """Outputs and the inputs that they become. An input whose name has commas is the last one of its text."""
    found: list[str] = []
    for text in texts:
        *others, last = _named([text])
        found += [*others[:-1], f"{others[-1]},{last}"] if others and last and "=" not in last else [*others, last]
    return _once(_state, found, "--state")


def _state(text: str) -> tuple[str, str]:
    output, _, before = text.partition("=")
    if not output or not before:
        raise ValueError(f"{text!r} is not OUTPUT=INPUT; write --state OUTPUT=INPUT")
    return output, before


def stream(texts: tuple[str, ...]) -> Stream:
    """Axes of time, and how many frames a push brings; each text may hold several, with commas between."""
    inputs: dict[str, int] = {}
    hop, edge = 1, ""
    for part in _named(texts):
        name, _, value = part.rpartition("=")
        number = value.removeprefix("-").isdecimal()
        if name == "edge":
            edge = value
        elif not name or not number:
            likely = f"INPUT={_axis_or_hop(part)}" if part.isdecimal() else f"{name or part or 'INPUT'}=1"
            hint = f"; did you mean --stream {likely}?"
            raise ValueError(f"{part!r} is not INPUT=AXIS, hop=FRAMES or edge=warm{hint}")
        elif name == "hop":
            hop = int(value)
        elif inputs.setdefault(name, int(value)) != int(value):
            raise ValueError(f"{name!r} has one axis of time, not {inputs[name]} and {value}: write one of them")
    if texts and not inputs:
        raise ValueError(f"{','.join(texts)!r} names no input: write INPUT=AXIS")
    return Stream(inputs, hop, edge)


def _axis_or_hop(number: str) -> str:
    return number if int(number) <= _LIKELY_AXIS else f"1,hop={number}"


def prepended(texts: Iterable[str | Path]) -> tuple[Prepended, ...]:
    """FILE, or FILE,OUTPUT=INPUT with as many pairs as there are."""
    found = []
    for text in texts:
        file, *pairs = str(text).split(",")
        ends = [pair.partition("=") for pair in pairs]
        if not file or not all(output and into for output, _, into in ends):
            raise ValueError(f"{str(text)!r} is not FILE or FILE,OUTPUT=INPUT,...")
        found.append(Prepended(Path(file), {output: into for output, _, into in ends}))
    return tuple(found)


def external(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names of what lies outside the arena."""
    names = []
    for part in (part for text in texts for part in text.split(",")):
        name, equals, place = part.rpartition("=")
        if place != "external" or (equals and not name):
            likely = "external" if "external" in ours(part) else f"{part.partition('=')[0]}=external"
            raise ValueError(f"{part!r} is not external or NAME=external; did you mean --io {likely}?")
        names.append(name or ALL)
    return tuple(names)


def functions(texts: Iterable[str]) -> tuple[OwnFunction, ...]:
    return tuple(own_function(text) for text in texts)


def input_forms(texts: tuple[str, ...]) -> dict[str, InputForm]:
    return _once(parse_input, texts, "--input")


def output_forms(texts: tuple[str, ...]) -> dict[str, OutputForm]:
    return _once(parse_output, texts, "--output")


def names(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(texts)


def wrappers(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(texts))


def recipe(method: str) -> Recipe:
    return Recipe(method)


def optimized(plain: bool) -> bool:
    return not plain


BUDGETS = ("ram", "fast", "weights", "flash", "stack", "instructions")


def budget(texts: tuple[str, ...]) -> dict[str, int]:
    """What may be used at most; each text may hold several, with commas between."""
    return dict(_budget(part) for text in texts for part in text.split(","))


def _budget(text: str) -> tuple[str, int]:
    what, _, size = text.partition("=")
    if what not in BUDGETS:
        raise ValueError(f"{text!r} is not one of the budgets {', '.join(BUDGETS)}; {_instead_of_budget(text)}")
    return what, budget_of(what, size)


def _instead_of_budget(part: str) -> str:
    """`64K`, `RAM=64K`, `ram:64K`, `rom=64K`, `latency=5ms`; or what holds something else to a figure."""
    name, _, size = re.sub(r"\s*(?:[<≤:]?=|[<≤:\s])\s*", "=", re.sub(r"(?<=\d)\s+", "", part.strip())).rpartition("=")
    what = near(name, BUDGETS) if name else "ram"
    if not what and "--sensitivity" in ours(name):
        return "leave it out: outputs are held to so many dB by quantize --sensitivity 30"
    fits = bool(what) and _number(size, 1024) is not None
    likely = f"{what or 'ram'}={size if fits else '2M' if what == 'instructions' else '96K'}"
    return f"did you mean --budget {likely}?" if what else f"name one of them, such as --budget {likely}"


def budget_of(what: str, size: str) -> int:
    """Bytes, where K is 1024; or instructions, where it is 1000; of RAM also as few as there can be."""
    if (what, size) == ("ram", "min"):
        return LEAST
    number = _number(size, 1000 if what == "instructions" else 1024)
    if number is None:
        example = "2M" if what == "instructions" else "96K"
        likely = f"{what}={_digits(size) or example}"
        raise ValueError(f"'{what}={size}' is not {what}=SIZE; did you mean --budget {likely}?")
    return number


def window(given: str | int) -> int:
    """Bytes: of 64K as many as 65536 says; 0 where nothing is given."""
    text = str(given or "")
    nbytes = _number(text) if text else 0
    if nbytes is None or (text and nbytes == 0):
        given = _digits(text).lstrip("0") or "64"
        likely = f"{given}K" if int(given) < 1024 else given
        raise ValueError(f"{text!r} is not a size; did you mean --weights-window {likely}?")
    return nbytes


def max_slice(given: str | int) -> int:
    """Cycles: of 50K as many as 50000 says; 0 where nothing is given."""
    text = str(given or "")
    cycles = _number(text, 1000) if text else 0
    if cycles is None or (text and cycles == 0):
        number = _digits(text.removeprefix("max=")).lstrip("0") or "50"
        raise ValueError(f"{text!r} is not a number of cycles; did you mean --max-slice {number}K?")
    return cycles


def pools(texts: tuple[str, ...]) -> tuple[Pool, ...]:
    """Memories for tensors, the fastest first: those named `fast`, then the others, as they were given."""
    found = []
    for text in texts:
        what, *words = text.split(",")
        name, equals, size = what.partition("=")
        nbytes, speed, timing = _number(size), words[0] if words else "", _TIMING.fullmatch(",".join(["", *words[1:]]))
        wrong = not POOL_NAME.fullmatch(name) or (equals and nbytes is None) or timing is None
        if wrong or (words and speed not in ("fast", "copied")) or (words[1:] and speed != "copied"):
            form = "NAME=SIZE, NAME=SIZE,fast or NAME=SIZE,copied[,80MB/s[,2us]]"
            form += " with a NAME of small letters and digits"
            raise ValueError(f"{text!r} is not {form}; did you mean {_likely_pools(text)}?")
        assert timing is not None
        rate, latency = (int(each) if each else 0 for each in timing.group(1, 2))
        latency *= 1000 if timing[3] == "us" else 1
        found.append(Pool(name, nbytes, 0 if speed == "fast" else 1, speed == "copied", rate or None, latency))
    names = [pool.name for pool in found]
    for name in names:
        if names.count(name) > 1:
            fix = "did you mean " + " ".join(_flag_of(pool, n) for n, pool in enumerate(found)) + "?"
            raise ValueError(f"pool {name!r} is there twice, and each has a name of its own; {fix}")
    return fastest_first(found)


def _flag_of(pool: Pool, number: int) -> str:
    size = "" if pool.bytes is None else f"={pool.bytes}"
    word = ",copied" if pool.copied else "" if pool.speed else ",fast"
    word += f",{pool.rate}MB/s" if pool.rate else ""
    word += f",{pool.latency_ns}ns" if pool.latency_ns else ""
    return f"--mem {pool.name}{number + 1 if number else ''}{size}{word}"


def _likely_pools(text: str) -> str:
    """`64K`, `dtcm:64K`, `DTCM=64KB:0`, `dtcm=64K,slow`, `dtcm=64K,fast,sram=256K`: each pool by a flag of its own."""
    found: list[str] = []
    for word in re.sub(r"@\w+", "", text.lower()).replace(":", "=").split(","):
        name, equals, size = word.partition("=")
        if word in ("fast", "copied") and found:
            found[-1] += f",{word}"
        elif equals or word[:1].isdigit():
            plain = re.sub(r"^[^a-z]+|[^a-z0-9]", "", name) if equals else ""
            known = re.match(r"0*[1-9]\d*[km]?", size if equals else word)
            if known and (size if equals else word)[known.end() :].startswith(("g", "t")):  # more than a core addresses
                found.append(f"--mem {plain or 'sram'}")
            else:
                found.append(f"--mem {plain or 'sram'}={known[0] if known else '64k'}")
    return " ".join(found) or "--mem sram=64K"


def _digits(size: str) -> str:
    """What is a size in front of a unit that is none."""
    found = re.match(r"\d+", size)
    return found[0] if found else ""


_LIKELY_AXIS = 3  # a larger number alone is likelier a hop
_TIMING = re.compile(r"(?:,([1-9]\d{0,5})MB/s(?:,([1-9]\d{0,5})([un]s))?)?", re.ASCII)
_UNIT = re.compile(r"(\d+)([KM]?)(I?B)?", re.IGNORECASE | re.ASCII)


def _number(size: str, thousand: int = 1024) -> int | None:
    """65536, 64K, 64KB, 64KiB or 1M as a number; None: it is not one of these."""
    parts = _UNIT.fullmatch(size)
    if parts is None:
        return None
    return int(parts[1]) * {"": 1, "K": thousand, "M": thousand * thousand}[parts[2].upper()]


def winograd(given: str | int | None) -> int | None:
    """`off`, `2` or `4`: the largest tile."""
    tiles = {"off": 0, "0": 0, "2": 2, "4": 4}
    if given is not None and str(given) not in tiles:
        raise ValueError("write off, 2 or 4")
    return None if given is None else tiles[str(given)]


def shape(text: str) -> tuple[str, tuple[int | str | tuple[int, ...], ...]]:
    """Sizes; or, of a sequence, a list in brackets for each element."""
    name, equals, sizes = text.rpartition("=")
    if not equals or not name:
        given, _, rest = text.replace(" ", "").partition(":")
        unnamed = f"INPUT={given}" if re.fullmatch(r"[\d,x\[\]]+", given) else f"{given}=1"
        likely = f"{given}={rest}" if rest else unnamed
        raise ValueError(f"{text!r} is not INPUT=SIZE,SIZE,...; did you mean --shape {likely}?")
    if re.fullmatch(r"\d+(x\d+)+", sizes):
        likely = f"{name}={sizes.replace('x', ',')}"
        raise ValueError(f"{text!r} has no commas between sizes; did you mean --shape {likely}?")
    if sizes.startswith("["):
        if not re.fullmatch(r"\[[\d, ]*\]( *,? *\[[\d, ]*\])*", sizes):
            raise ValueError(f"{text!r} is not INPUT=[SIZE,...],[SIZE,...]")
        return name, tuple(tuple(map(int, re.findall(r"\d+", each))) for each in re.findall(r"\[(.*?)\]", sizes))
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    if "" in parts:
        raise ValueError(f"{text!r} has an empty size")
    return name, tuple(int(part) if part.lstrip("-").isdigit() else part for part in parts)


def shapes(texts: tuple[str, ...]) -> dict[str, tuple[int | str | tuple[int, ...], ...]]:
    return _once(shape, texts, "--shape")
