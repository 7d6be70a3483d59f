"""What report.json of an output folder says that running needs, and whether inputs are as it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from mccompile.base import dims
from mccompile.base.dtypes import DTYPES, DType, string
from mccompile.base.errors import BadFile, CheckFailed, Problem, WrongUse, raise_all
from mccompile.base.names import c_identifier
from mccompile.base.near import meant
from mccompile.base.records import dataclass
from mccompile.base.structures import Interface
from mccompile.graph.refusals import bound_flag

OUT_OF_BOUNDS = 3  # of the statuses (emit/statuses.py): MCC_ERR_SIZE
_COUNT = 4  # bytes of the number of pushes, which is saved behind the states


@dataclass(frozen=True)
class InRows:
    """An input that a function gives row by row."""

    axis: int
    count: int
    bytes: int  # of each


@dataclass(frozen=True)
class Tensor:
    """An input or output as report.json describes it; `symbol` is its part of the accessor's name."""

    name: str
    symbol: str
    dtype: DType
    shape: tuple[int | str, ...]  # names of sizes that are known only at run time, or what follows from them
    nbytes: int  # at most
    room: int = 0  # of memory outside the arena: bytes, and alignment; 0: it lies in the arena
    align: int = 1
    rows: InRows | None = None  # `room` holds them all then, one after the other

    @property
    def is_static(self) -> bool:
        return all(isinstance(size, int) for size in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.shape)

    def in_memory(self, array: np.ndarray) -> np.ndarray:
        """As programs have it: of an input by rows, these come first."""
        return array if self.rows is None else np.moveaxis(array, self.rows.axis, 0)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Arena:
    bytes: int
    align: int
    pool: str = ""  # its name, where a model has several


@dataclass(frozen=True)
class Phase:
    """A call of a program that has several."""

    name: str
    inputs: tuple[str, ...]  # that it is given
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What report.json says that running needs."""

    prefix: str
    arenas: tuple[Arena, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    given: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # sizes that a run is told, and their bounds
    interface: Interface | None = None  # where inputs or outputs are not only tensors
    advances: bool = False  # it can be run for its states alone
    sliced: bool = False  # it can be run step by step
    profiled: int = 0  # steps whose time it counts
    dumped: bool = False  # it can hand out what steps make
    macs: int = 0  # of a run
    states: tuple[Tensor, ...] = ()  # what a run leaves for the next one
    threads: int = 1  # workers that may share a step
    module: str = ""  # the file that code and weights become; "": they are linked with the program
    initial: tuple[str, ...] = ()  # states that begin with values of the blob
    phases: tuple[Phase, ...] = ()  # of a model that learns
    bounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of tensors, as it was compiled with
    dims: tuple[str, ...] = ()  # the file's names of sizes that options fix or bound
    warm_up: int = 0  # pushes up to the first that gives a result; 0: a run takes whole windows

    @property
    def state_bytes(self) -> int:
        return sum(state.nbytes for state in self.states) + (_COUNT if self.warm_up else 0)

    @property
    def learns(self) -> bool:
        return any(phase.name == "learn" for phase in self.phases)

    def failed(self, function: str, status: int, text: str) -> CheckFailed:
        """What a call that answered with another status than MCC_OK is reported as."""
        why, fix = f"{text} (status {status})", ""
        if status == OUT_OF_BOUNDS and self.bounds:
            why += f": these inputs lead to sizes above {_flags(self.bounds, 1)}"
            fix = f"compile with higher bounds, such as {_flags(self.bounds, 2)}, or give inputs with smaller results"
        return CheckFailed(Problem(f"{self.prefix}_{function} failed", "", why, fix))

    def resets(self, before: Mapping[str, int], now: Mapping[str, int]) -> bool:
        """Do other sizes than before reset it? Those in its shapes do."""
        known = {name: dims.symbol(name, low, high) for name, (low, high) in self.given.items()}
        shapes = (dims.parse(size, known) for state in self.states for size in state.shape if isinstance(size, str))
        return any(before[symbol.name] != now[symbol.name] for dim in shapes for symbol in dims.symbols(dim))


def _flags(bounds: Mapping[str, tuple[int, ...]], times: int) -> str:
    """Bounds of sizes as they are given, so many times as high; in Python where they are for all sizes."""
    higher = {name: tuple(times * n for n in most) for name, most in bounds.items()}
    if "*" in bounds:
        return f"bounds={higher}"
    return " ".join(bound_flag(name, most) for name, most in higher.items())


def read_report(folder: Path) -> Report:
    """The report of an output folder; anything missing or odd in it is a bad file."""
    try:
        content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if several := [str(each["model"]) for each in content.get("models", ())]:
            what, fix = "there are several models in the folder", "compile each to a folder of its own"
            raise WrongUse(Problem(what, str(folder), f"report.json lists {', '.join(several)}", fix))
        return report_of(content)
    except OSError as error:
        raise bad_folder(folder, f"report.json: {error.strerror}") from error
    except KeyError as error:
        raise bad_folder(folder, f"report.json has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise bad_folder(folder, f"report.json: {error}") from error


def read_blob(folder: Path, report: Report) -> bytes:
    """The weights, wherever the layout of the folder has them."""
    name = f"{report.prefix}.mcb"
    listed = json.loads((folder / "report.json").read_text(encoding="utf-8")).get("files", ())
    place = next((path for path in listed if PurePosixPath(path).name == name), name)
    try:
        return (folder / place).read_bytes()
    except OSError as error:
        raise bad_folder(folder, f"{place}: {error.strerror}") from error


def report_of(content: Mapping[str, Any]) -> Report:
    """What the contents of a report say."""
    return Report(
        prefix=str(content["prefix"]),
        arenas=_arenas(content),
        inputs=tuple(_tensor(entry) for entry in content["inputs"]),
        outputs=tuple(_tensor(entry) for entry in content["outputs"]),
        states=tuple(_tensor(entry) for entry in content.get("states", [])),
        advances="advances" in content,
        sliced="slices" in content,
        profiled=len(content["steps"]) if content.get("profiled") else 0,
        dumped="unseen" in content,
        macs=sum(int(step.get("macs", 0)) for step in content.get("steps", [])),
        given={
            str(size["name"]): (int(size["low"]), int(size["high"]))
            for size in content.get("sizes", [])
            if size["given"]
        },
        interface=Interface.from_json(content["interface"]) if "interface" in content else None,
        threads=int(content.get("threads", 1)),
        module=str(content.get("module", "")),
        initial=tuple(map(str, content.get("initial", []))),
        phases=tuple(
            Phase(str(phase["name"]), tuple(phase["inputs"]), tuple(phase["arguments"]))
            for phase in content.get("phases", [])
        ),
        bounds={str(name): tuple(map(int, most)) for name, most in content["options"].get("bounds", {}).items()}
        if "options" in content
        else {},
        dims=tuple(content.get("options", {}).get("dims", {})),
        warm_up=int(content.get("stream", {}).get("warm_up", 0)),
    )


def sources_of(folder: Path, prefix: str) -> list[Path]:
    """The C files of a model in its output folder: neither the program that runs it, nor the server of a board."""
    others = {"main.c", f"{prefix}_serve.c"}
    return [path for path in sorted(folder.glob("*.c")) if path.name not in others]


def _arenas(content: Mapping[str, Any]) -> tuple[Arena, ...]:
    if "pools" not in content:
        return (Arena(int(content["arena_bytes"]), int(content["arena_align"])),)
    return tuple(Arena(int(pool["bytes"]), int(pool["align"]), str(pool["name"])) for pool in content["pools"])


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    dtype, outside = DTYPES[str(entry["dtype"])], entry.get("external")
    tensor = Tensor(
        name=str(entry["name"]),
        symbol=str(entry["symbol"]),
        dtype=dtype,
        shape=tuple(size if isinstance(size, str) else int(size) for size in entry["shape"]),
        nbytes=int(entry["bytes"]),
        room=max(int(outside["bytes"]), 1) if outside else 0,
        align=int(outside["align"]) if outside else 1,
    )
    if "rows" in entry:
        rows = InRows(*(int(entry["rows"][word]) for word in ("axis", "count", "bytes")))
        tensor = replace(tensor, room=max(tensor.nbytes, 1), rows=rows)
    if tensor.is_static and tensor.nbytes != dtype.nbytes(prod(tensor.static_shape)):
        raise ValueError(f"{tensor.name}: {tensor.nbytes} bytes do not hold {tensor}")
    return tensor


def bad_folder(folder: Path, why: str) -> BadFile:
    return BadFile(
        Problem(
            "this is not an output folder of mccompile",
            where=str(folder),
            why=why,
            fix=f"write it with `mccompile model.onnx -o {folder}`"
            if not folder.is_file()
            else f"give the folder that `mccompile {folder} -o out` writes",
        )
    )


def check_inputs(report: Report, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuses names, shapes and element types that are not the model's."""
    expected = {tensor.name: tensor for tensor in report.inputs}
    problems = [
        Problem(
            f"there is no input {name!r}",
            where=report.prefix,
            why=f"the inputs are {', '.join(expected) or 'none'}",
            fix=meant(name, expected) or "remove it or correct its name",
        )
        for name in inputs
        if name not in expected
    ]
    for name, tensor in expected.items():
        given = inputs.get(name)
        if given is None:
            problems.append(Problem(f"input {name!r} is missing", where=report.prefix, fix=f"give it as {tensor}"))
        elif not _fits(given.shape, tensor.shape) or not _is_of(given, tensor.dtype):
            shown = f"{given.dtype}[{','.join(map(str, given.shape))}]"
            problems.append(
                Problem(f"input {name!r} does not fit", where=report.prefix, why=shown, fix=f"give {tensor}")
            )
    raise_all(WrongUse, problems)


def _is_of(given: np.ndarray, dtype: DType) -> bool:
    return given.dtype.kind in "OUS" if dtype is string else given.dtype == dtype.numpy


def _fits(given: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    return len(given) == len(shape) and all(isinstance(b, str) or a == b for a, b in zip(given, shape, strict=True))


def given_sizes(report: Report, inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes by name, as the inputs have them; where they have only what is computed from one, the first that fits."""
    sizes: dict[str, int] = {}
    computed: dict[str, int] = {}
    for tensor in report.inputs:
        for size, name in zip(inputs[tensor.name].shape, tensor.shape, strict=True):
            found = sizes if name in report.given else computed
            if isinstance(name, str) and found.setdefault(name, size) != size:
                why = f"{name} is {found[name]} and {size}"
                raise WrongUse(Problem(f"input {tensor.name!r} does not fit the others", report.prefix, why))
    for symbol in report.given:
        low, high = report.given[symbol]
        trials = (sizes | {symbol: size} for size in range(low, high + 1))
        if symbol not in sizes:
            sizes = next((trial for trial in trials if _agree(trial, computed)), sizes | {symbol: high})
    if not _agree(sizes, computed):
        why = ", ".join(f"{text} is {size}" for text, size in (sizes | computed).items())
        raise WrongUse(Problem("sizes of inputs do not fit each other", report.prefix, why))
    return sizes


def refuse_sizes_outside(report: Report, sizes: Mapping[str, int]) -> None:
    """Names those that code was not compiled for, and what it was compiled for."""
    problems = []
    for symbol, size in sizes.items():
        low, high = report.given[symbol]
        if low <= size <= high:
            continue
        dim = next((name for name in report.dims if f"n_{c_identifier(name)}" == symbol), symbol.removeprefix("n_"))
        axes = [(t.name, t.shape.index(symbol)) for t in report.inputs if symbol in t.shape]
        place = "".join(f"axis {axis} of {name!r}" for name, axis in axes[:1]) or report.prefix
        why = f"the model was compiled for {dim} from {low} to {high}"
        fix = f"give such sizes, or compile it with dims={{{dim!r}: ({min(low, size)}, {max(high, size)})}}"
        problems.append(Problem(f"the size {dim} cannot be {size}", place, why, fix))
    raise_all(WrongUse, problems)


def _agree(sizes: Mapping[str, int], computed: Mapping[str, int]) -> bool:
    """Are computed sizes what follows from those that are known? What needs others is not known yet."""
    for text, size in computed.items():
        try:
            if dims.parse(text, sizes) != size:
                return False
        except ValueError:
            continue
    return True
