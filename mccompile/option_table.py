"""The table of options: each is one entry here, and everything that knows options reads it from there.

These read it: the command line (flag, help, and its group), project files, Python's keywords, `Options`, report.json,
the names of cached builds, and the fuzzer. Invariant: what an option means is decided in driver/options.py and below;
this module imports nothing of the compiler, so that --help is quick.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base.option_entries import ENTRY, NO_FLAG, Entry, of_keys, of_names, of_pairs
from .base.quantizing import METHODS, Recipe
from .base.records import dataclass
from .base.streaming import Stream

if TYPE_CHECKING:
    from .base.column_tiles import ColumnTiles
    from .base.own_functions import OwnFunction
    from .emit.blob import Carrier
    from .importers.joining import Prepended
    from .passes.api import BlockActivations, CacheDtype, WeightsDtype
    from .passes.io.io_forms import InputForm, OutputForm
    from .passes.io.turn_io import IoLayout
    from .targets.api import Pool, Prefer

FILES, TARGET, SIZES, MEMORY = "Files", "Target", "Sizes", "Memory"  # groups of --help
INT8, ENDS, INSIDE = "Int8", "Inputs and outputs", "Looking inside"


def _option(text: str, group: str, default: Any = None, make: Callable[[], Any] | None = None, **more: Any) -> Any:
    """The field of an option; `make` makes a default that is not a constant."""
    metadata = {ENTRY: Entry(text, group, **more)}
    if make is not None:
        return dataclasses.field(default_factory=make, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _by_name(text: str, group: str, **more: Any) -> Any:
    """The field of an option that says something of each tensor or dimension that it names."""
    return _option(text, group, make=dict, part=of_keys, **more)


def _internal(default: Any, **more: Any) -> Any:
    """A field that the compiler sets itself; no flag leads to it."""
    return _option("", "", default, flag=NO_FLAG, **more)


@dataclass(frozen=True)
class OptionTable:
    """Everything that can be asked for besides the model."""

    name: str = _option(
        "Name of the model and prefix in C; default: the file's name.",
        FILES,
        "",
        common=True,
        recorded=False,
        undrawn="each program of a batch needs another one; tests/test_cli.py gives awkward ones",
    )
    wrappers: tuple[str, ...] = _option(
        "Also write wrappers for other languages: cpp, a header with spans and RAII.",
        FILES,
        (),
        flag="--wrapper",
        metavar="cpp",
        reads="wrappers",
        draws=(("cpp",),),
        share=0.03,
    )
    single_file: bool = _option("Write one C file and one header, with everything in them.", FILES, False)
    module: bool = _option(
        "Put code and weights into one file that runs at any address. Firmware loads it (runtime/mcc_module.h), "
        "so a new architecture can be sent over the air.",
        FILES,
        False,
        undrawn="a way in which programs are built (ways.py)",
    )
    advance: bool = _option("Add <model>_advance, which updates states without computing outputs.", FILES, False)
    slices: bool = _option("Add <model>_run_steps, which runs a few steps at a time.", FILES, False)
    max_slice: int = _option(
        "Split a run into slices of at most this many estimated cycles: 50K.",
        FILES,
        0,
        reads="max_slice",
        draws=(3000, 30000),
    )

    target: str = _option(
        "A target's name (`mccompile targets`) or TOML file; or several, with commas between. See --board.",
        TARGET,
        "generic",
        common=True,
    )
    prefer: Prefer | None = _option(
        "Optimize for ram, time, flash or balanced; the target has a default. "
        "With ram, saving 1 % of it may cost 2 % of time.",
        TARGET,
        common=True,
        metavar="ram|time|flash|balanced",
        draws=("ram", "time", "flash", "balanced"),
        share=0.6,
    )
    board: str = _option(
        "A board or a chip by its name (`mccompile boards`), such as nucleo_f446re: sets the target, and budgets "
        "of RAM and weights where --budget gives none.",
        TARGET,
        "",
        metavar="NAME",
        recorded=False,
    )
    tuned: Path | None = _option(
        "Choose kernels by the measurements of `mccompile tune` in FILE; --tuned default: by those included.",
        TARGET,
        metavar="FILE",
    )
    threads: int = _option(
        "Threads that may share a long step; the program starts them (<model>_set_parallel).",
        TARGET,
        1,
        metavar="COUNT",
        draws=(2, 3),
    )
    winograd: int | None = _option(  # 0, 2 or 4
        "Largest tile of Winograd convolutions. They take less time, need larger weights, and have errors near "
        "2e-6 of the largest result (tile 2: 1e-6; integers are exact). The target has a default.",
        TARGET,
        values=("off", "2", "4"),
        reads="winograd",
        draws=(0, 2, 4),
        share=0.15,
    )
    float_error: float | None = _option(
        "Largest rounding error of an output, relative to its largest element and estimated from the weights: "
        "1e-6. Smaller errors cost time. Default: 3e-5, unless that costs too much time.",
        TARGET,
        metavar="FRACTION",
        draws=(1e-9, 1e-5, 1.0),
        share=0.2,
    )
    kernels: tuple[Path, ...] = _option(
        "A folder with kernels of your own.",
        TARGET,
        (),
        metavar="DIR",
        undrawn="kernels of the user's own are what the user writes",
    )
    functions: tuple[OwnFunction, ...] = _option(
        "Compute an operator, a node, or the nodes between two tensors (FIRST..LAST) with your own C function. "
        "Also: python=FILE, result=f32:1x8, workspace=BYTES, align=BYTES, nhwc, strided.",
        TARGET,
        (),
        flag="--external",
        metavar="OPERATOR=FUNCTION[,include=FILE]",
        reads="functions",
    )
    accelerator: str = _option(
        "Run parts of the network on an accelerator where that is faster; DIR describes one of your own.",
        TARGET,
        "",
        metavar="NAME|DIR",
    )

    dims: Mapping[str, tuple[int, int]] = _by_name(  # lowest and highest
        "Sizes of free dimensions, or their ranges: batch=1..8,time=1..64.",
        SIZES,
        common=True,
        flag="--dim",
        metavar="NAME=SIZE,...",
        reads="dims",
    )
    shapes: Mapping[str, tuple[int | str | tuple[int, ...], ...]] = _by_name(
        "Shape of an input. For a sequence: one shape for all elements, or [4],[3] for each.",
        SIZES,
        common=True,
        flag="--shape",
        metavar="INPUT=1,3,32,32",
        reads="shapes",
        undrawn="graphs come with their shapes; tests/ops/test_free_sizes.py gives others",
    )
    bounds: Mapping[str, tuple[int, ...]] = _by_name(
        "Upper bounds of sizes that depend on data, by the name of a tensor or a dimension: selected=100.",
        SIZES,
        flag="--bound",
        metavar="NAME=COUNT,...",
        reads="bounds",
    )

    budget: Mapping[str, int] = _option(
        "Fail above a limit: ram=96K (the arena), weights=400K; measured: flash=512K (code and weights), "
        "stack=2K, instructions=2M. ram=min: the smallest arena, however slow. fast=16K: compute in that much "
        "fast memory, and copy everything else.",
        MEMORY,
        make=dict,
        common=True,
        metavar="KIND=SIZE,...",
        reads="budget",
        recorded=False,
        draws=({"ram": 1 << 24, "flash": 1 << 24, "weights": 1 << 24}, {"fast": 2048}),
        share=0.05,
    )
    mem: tuple[Pool, ...] = _option(  # empty: what the target says
        "A memory for tensors, with an arena of its own: dtcm=64K,fast then sram=256K. Tensors that are used most "
        "go to the fast ones. Steps do not compute in a `copied` memory (psram=8M,copied): its rows are copied.",
        MEMORY,
        (),
        common=True,
        metavar="NAME=SIZE[,fast|,copied[,80MB/s[,2us]]]",
        reads="pools",
    )
    rows: str = _option(
        "Fuse chains of convolutions line by line where that saves memory (with --prefer ram), and MLPs by blocks "
        "of rows.",
        MEMORY,
        "auto",
        values=("off", "auto"),
        share=0.2,
    )
    recompute: float = _option(
        "Save memory by computing values again, with up to FACTOR times the multiply-accumulates: 1.3. Layers run "
        "in tiles of columns; in training, activations are computed again.",
        MEMORY,
        1.0,
        metavar="FACTOR",
        draws=(1.1, 1.5, 4.0),  # where RAM comes first something runs row by row
        share=0.15,
    )
    planner: str = _option("Memory planner; default: chosen to suit the options.", MEMORY, "", share=0.3)
    keep_inputs: bool = _option("Do not overwrite the model's inputs in a run.", MEMORY, False)
    blob: Carrier = _option(
        "How the program gets the weights: as a C array, with the assembler's .incbin, or by loading the .mcb itself.",
        MEMORY,
        "array",
        values=("array", "incbin", "external"),
        share=0.15,
    )
    trust_blob: bool = _option(
        "Do not verify the checksum of the weights in init, because a boot loader does.",
        MEMORY,
        False,
        undrawn="damaged blobs are to be refused",
    )
    weights_section: str = _option(
        "Linker section for the weights, such as .qspi.",
        MEMORY,
        "",
        metavar="NAME",
        draws=(".fuzzed",),
        share=0.05,
    )
    weights_window: int = _option(
        "Copy weights into the arena when a step needs them, at most SIZE bytes at a time: 64K. They may then lie "
        "in a file, on a card or in slow memory (<model>_init_from).",
        MEMORY,
        0,
        metavar="SIZE",
        reads="window",
        draws=(256, 4096, 1 << 16),
        share=0.1,
    )
    column_tiles: tuple[ColumnTiles, ...] = _internal((), undrawn="what recompute leads to")
    seeded: bool = _internal(False, recorded=False, undrawn="what check asks for")  # the same numbers in every run
    enough: int = _internal(0, draws=(256, 2048, 1 << 14))  # bytes of the arena: less is no better. A budget sets it

    quantize: Path | None = _option(
        "Quantize to int8 first, with ranges from these samples (see `mccompile quantize`).",
        INT8,
        common=True,
        metavar="SAMPLES",
        undrawn="changes what is computed; tests/quantize compares that with the float network",
    )
    recipe: Recipe = _option(
        "How to derive quantization ranges from samples; default: search.",
        INT8,
        make=Recipe,
        flag="--calibrate",
        values=METHODS,
        reads="recipe",
        undrawn="goes with quantize",
    )
    weights_dtype: WeightsDtype = _option(
        "Store weights of convolutions and matrix products in 16 bits; `check` shows the effect on results.",
        INT8,
        "",
        values=("f16", "bf16"),
    )
    cache_dtype: CacheDtype = _option(
        "Store growing states, such as key and value caches, in f16, or in int8 with a scale for each row. "
        "`check` shows the effect on results.",
        INT8,
        "",
        values=("f16", "int8"),
        undrawn="only decoders have such states: tests/fuzz/languages draws it",
    )
    block_activations: BlockActivations = _option(
        "How to multiply weights of few bits: with float activations, or with activations rounded to int8 in "
        "blocks, which is faster. model: rounded where the model permits it (accuracy_level=4). `check` shows the "
        "effect on results.",
        INT8,
        "model",
        values=("model", "float", "int8"),
    )
    updatable: bool = _option(
        "For int8: generate code that works with any scales and zero points, so that `mccompile blob` can replace "
        "weights by retrained ones. Costs a few instructions per element.",
        INT8,
        False,
        share=0.15,
    )

    inputs: Mapping[str, InputForm] = _by_name(
        "Element type and layout that the program passes; the model gets (input - mean) * scale. With `rows` a "
        "callback passes the input row by row, so that it never lies in memory whole. Camera frames: "
        "NAME=nv21,resize=bilinear:640x480,crop=X:Y:WxH,letterbox; also nv12, yuyv, rgb565, gray, rgb.",
        ENDS,
        common=True,
        flag="--input",
        metavar="NAME=u8,nhwc,bgr,rows,mean=..,scale=..",
        reads="input_forms",
    )
    outputs: Mapping[str, OutputForm] = _by_name(
        "Form in which the program gets an output.",
        ENDS,
        common=True,
        flag="--output",
        metavar="NAME=argmax|raw|nhwc|scale=..,zero=..",
        reads="output_forms",
    )
    stream: Stream = _option(
        "Run a network over sliding windows frame by frame: the program passes only the newest frames along AXIS, "
        "and only what is new is computed (<model>_push).",
        ENDS,
        make=Stream,
        common=True,
        metavar="INPUT=AXIS[,hop=FRAMES][,edge=warm]",
        reads="stream",
        part=Stream.within,
    )
    prepend: tuple[Prepended, ...] = _option(
        "Put a model in front, such as one of `mccompile frontend`: its outputs become inputs of the network, by "
        "name or where only one fits.",
        ENDS,
        (),
        metavar="MODEL[,OUTPUT=INPUT]",
        path=True,
        reads="prepended",
        undrawn="a second model, joined before anything is compiled; tests/importers/test_joining.py does that",
    )
    state: Mapping[str, str] = _option(
        "Keep an output inside the model, and pass it to the next run as that input.",
        ENDS,
        make=dict,
        metavar="OUTPUT=INPUT,...",
        reads="states",
        part=of_pairs,
    )
    external: tuple[str, ...] = _option(
        "Place inputs and outputs outside the arena, behind pointers that the program sets before a run.",
        ENDS,
        (),
        flag="--io",
        metavar="external|NAME=external,...",
        reads="external",
        part=of_names,
    )
    io_layout: IoLayout = _option(
        "Axis order of image inputs and outputs.", ENDS, "onnx", metavar="onnx|nhwc", draws=("nhwc",), share=0.06
    )
    observe: tuple[str, ...] = _option("Make an inner tensor an output.", ENDS, (), metavar="TENSOR", part=of_names)
    signature: str = _option(
        "The signature to compile, if a TFLite file has several.",
        ENDS,
        "",
        metavar="KEY",
        undrawn="only files of TFLite have several; tests/importers/tflite does that",
    )
    trust: bool = _option(
        "Load model files that execute code when they are loaded (pickles, ...).",
        ENDS,
        False,
        recorded=False,
        undrawn="only files of other tools are loaded by executing them; tests/importers does that",
    )

    profile: bool = _option(
        "Measure how long each step takes (<model>_put_profile shows it).", INSIDE, False, share=0.06
    )
    dump_values: bool = _option(
        "Pass the results of each step to a callback (<model>_set_dump), for `mccompile compare`.",
        INSIDE,
        False,
        share=0.06,
    )
    optimize: bool = _option("Skip all optional passes.", INSIDE, True, flag="-O0", reads="optimized", share=0.2)
    without: frozenset[str] = _option(
        "Skip one pass, or do not use one kernel: gemm/f32_rows_tile__vec.",
        INSIDE,
        frozenset(),
        metavar="PASS|KERNEL",
        reads="names",
    )
    print_after: frozenset[str] = _option(
        "Print the IR after a pass, or after `all`.",
        INSIDE,
        frozenset(),
        metavar="PASS",
        reads="names",
        recorded=False,
        undrawn="prints",
    )
    dump: Path | None = _option(
        "Write the IR and drawings after every pass to DIR.",
        INSIDE,
        metavar="DIR",
        recorded=False,
        undrawn="writes drawings",
    )


@dataclass(frozen=True)
class Option:
    """An entry with what its field says."""

    name: str
    type: str
    default: Any  # None: one that is made
    entry: Entry

    @property
    def flag(self) -> str:
        return self.entry.flag or f"--{self.name.replace('_', '-')}"

    @property
    def has_flag(self) -> bool:
        return self.entry.flag != NO_FLAG


def options(table: type[OptionTable] = OptionTable) -> tuple[Option, ...]:
    """All of them; `table`: the class with its fields, or one with more."""
    return tuple(
        Option(field.name, str(field.type), None if field.default is dataclasses.MISSING else field.default, entry)
        for field in dataclasses.fields(table)
        if (entry := field.metadata.get(ENTRY)) is not None
    )
