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

from .base.option_entries import ENTRY, NO_FLAG, Entry
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
    """The field of an option; `make` makes a default that is no constant."""
    metadata = {ENTRY: Entry(text, group, **more)}
    if make is not None:
        return dataclasses.field(default_factory=make, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


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
        "Write what other languages use the model by, too: cpp, a header with spans and RAII.",
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
        "Make code and weights one file that runs from any address: firmware loads it (runtime/mcc_module.h), so "
        "another architecture can be sent over the air.",
        FILES,
        False,
        undrawn="a way in which programs are built (ways.py)",
    )
    advance: bool = _option(
        "Let programs run for the states alone (<model>_advance), without the steps that only outputs need.",
        FILES,
        False,
    )
    slices: bool = _option("Let programs run a few steps at a time (<model>_run_steps).", FILES, False)
    max_slice: int = _option(
        "Slices of at most this many estimated cycles: 50K.", FILES, 0, reads="max_slice", draws=(3000, 30000)
    )

    target: str = _option(
        "A target's name (`mccompile targets`) or TOML file; or several, with commas between. See --board.",
        TARGET,
        "generic",
        common=True,
    )
    prefer: Prefer | None = _option(
        "Optimize for ram, time, flash or balanced; the target has a default. For ram, 1 % of it may cost 2 % of time.",
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
        "Choose kernels by what `mccompile tune` measured, where FILE has it; --tuned default: the file that we ship.",
        TARGET,
        metavar="FILE",
    )
    threads: int = _option(
        "Workers that may share a long step; the program says how they run (<model>_set_parallel).",
        TARGET,
        1,
        metavar="COUNT",
        draws=(2, 3),
    )
    winograd: int | None = _option(  # 0, 2 or 4
        "Largest tile of Winograd's convolution: faster where time is preferred, with larger weights and "
        "errors near 2e-6 of the largest result (2: 1e-6; integers are exact). The target has a default.",
        TARGET,
        values=("off", "2", "4"),
        reads="winograd",
        draws=(0, 2, 4),
        share=0.15,
    )
    float_error: float | None = _option(
        "How far rounding errors of float products may move an output, of its largest element, as estimated from "
        "the weights: 1e-6. Smaller ones take time. Default: 3e-5, where that is worth its time.",
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
        "A C function of your own computes an operator, a node, or what lies between tensors (FIRST..LAST). "
        "Also: python=FILE, result=f32:1x8, workspace=BYTES, align=BYTES, nhwc, strided.",
        TARGET,
        (),
        flag="--external",
        metavar="OPERATOR=FUNCTION[,include=FILE]",
        reads="functions",
    )
    accelerator: str = _option(
        "Have an accelerator, or that of a folder, compute the regions that pay.", TARGET, "", metavar="NAME|DIR"
    )

    dims: Mapping[str, tuple[int, int]] = _option(  # lowest and highest
        "Sizes of free dimensions, or their ranges: batch=1..8,time=1..64.",
        SIZES,
        make=dict,
        common=True,
        flag="--dim",
        metavar="NAME=SIZE,...",
        reads="dims",
    )
    shapes: Mapping[str, tuple[int | str | tuple[int, ...], ...]] = _option(
        "Shape of an input; of a sequence, that of every element, or [4],[3] those of all.",
        SIZES,
        make=dict,
        common=True,
        flag="--shape",
        metavar="INPUT=1,3,32,32",
        reads="shapes",
        undrawn="graphs come with their shapes; tests/ops/test_free_sizes.py gives others",
    )
    bounds: Mapping[str, tuple[int, ...]] = _option(
        "Upper bounds of sizes that depend on data, by the name of a tensor or a dimension: selected=100.",
        SIZES,
        make=dict,
        flag="--bound",
        metavar="NAME=COUNT,...",
        reads="bounds",
    )

    budget: Mapping[str, int] = _option(
        "Fail above a limit: ram=96K (the arena), weights=400K; as measured flash=512K (code and weights), stack=2K, "
        "instructions=2M. ram=min is the smallest arena at any price. fast=16K: steps work there, all else is copied.",
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
        "A memory for tensors, with an arena of its own: dtcm=64K,fast then sram=256K. The fast ones get what is "
        "read and written most. A memory that is `copied` (psram=8M,copied) is accessed by copies of rows only.",
        MEMORY,
        (),
        common=True,
        metavar="NAME=SIZE[,fast|,copied[,80MB/s[,2us]]]",
        reads="pools",
    )
    rows: str = _option(
        "Run chains of convolutions row by row where that saves memory (and ram is preferred), "
        "and MLPs by blocks of rows.",
        MEMORY,
        "auto",
        values=("off", "auto"),
        share=0.2,
    )
    recompute: float = _option(
        "Compute in tiles of columns (in training, activations again) where that takes less memory, with up to so "
        "many times the multiply-accumulates: 1.3.",
        MEMORY,
        1.0,
        metavar="FACTOR",
        draws=(1.1, 1.5, 4.0),  # where RAM comes first something runs row by row
        share=0.15,
    )
    planner: str = _option("Memory planner; default: chosen to suit the options.", MEMORY, "", share=0.3)
    keep_inputs: bool = _option("A run must not overwrite the model's inputs.", MEMORY, False)
    blob: Carrier = _option(
        "How programs get the weights: as a C array, brought in by the assembler, or by themselves from the .mcb.",
        MEMORY,
        "array",
        values=("array", "incbin", "external"),
        share=0.15,
    )
    trust_blob: bool = _option(
        "Leave the checksums of the weights to a boot loader: init does not compute them.",
        MEMORY,
        False,
        undrawn="damaged blobs are to be refused",
    )
    weights_section: str = _option(
        "Section of the linker for the weights, such as .qspi.",
        MEMORY,
        "",
        metavar="NAME",
        draws=(".fuzzed",),
        share=0.05,
    )
    weights_window: int = _option(
        "Copy the weights into the arena while a run needs them, at most so many bytes at a time: 64K. They may then "
        "lie in a file, on a card, or in memory that is slow (<model>_init_from).",
        MEMORY,
        0,
        metavar="SIZE",
        reads="window",
        draws=(256, 4096, 1 << 16),
        share=0.1,
    )
    column_tiles: tuple[ColumnTiles, ...] = _internal((), undrawn="what recompute leads to")
    enough: int = _internal(0, draws=(256, 2048, 1 << 14))  # bytes of the arena: less is no better. A budget sets it

    quantize: Path | None = _option(
        "Quantize to int8 first, with ranges from these samples (see `mccompile quantize`).",
        INT8,
        common=True,
        metavar="SAMPLES",
        undrawn="changes what is computed; tests/quantize compares that with the float network",
    )
    recipe: Recipe = _option(
        "How quantization ranges are derived from samples; default: search.",
        INT8,
        make=Recipe,
        flag="--calibrate",
        values=METHODS,
        reads="recipe",
        undrawn="goes with quantize",
    )
    weights_dtype: WeightsDtype = _option(
        "Store weights of convolutions and matrix products in half the bytes; `check` says what that changes.",
        INT8,
        "",
        values=("f16", "bf16"),
    )
    cache_dtype: CacheDtype = _option(
        "Store states that grow, such as caches of keys and values, in fewer bits: f16, or int8 with a scale for each "
        "row. `check` says what that changes.",
        INT8,
        "",
        values=("f16", "int8"),
        undrawn="only decoders have such states: tests/fuzz/languages draws it",
    )
    block_activations: BlockActivations = _option(
        "Multiply weights of few bits with activations as they are, or rounded to int8 in blocks, a faster way; "
        "model: rounded where the model permits it (accuracy_level=4). `check` says what that changes.",
        INT8,
        "model",
        values=("model", "float", "int8"),
    )
    updatable: bool = _option(
        "Quantized: make code that suits other scales and zero points too, so that `mccompile blob` can bring "
        "weights trained anew to it. Costs a few instructions per element.",
        INT8,
        False,
        share=0.15,
    )

    inputs: Mapping[str, InputForm] = _option(
        "Element type and layout that the program passes; the model gets (input - mean) * scale. With `rows` a "
        "function of the program's gives them row by row, and the input never lies in memory whole. Frames of a "
        "camera: NAME=nv21,resize=bilinear:640x480,crop=X:Y:WxH,letterbox; also nv12, yuyv, rgb565, gray, rgb.",
        ENDS,
        make=dict,
        common=True,
        flag="--input",
        metavar="NAME=u8,nhwc,bgr,rows,mean=..,scale=..",
        reads="input_forms",
    )
    outputs: Mapping[str, OutputForm] = _option(
        "Form in which the program gets an output.",
        ENDS,
        make=dict,
        common=True,
        flag="--output",
        metavar="NAME=argmax|raw|nhwc|scale=..,zero=..",
        reads="output_forms",
    )
    stream: Stream = _option(
        "Run a network over windows frame by frame: a run takes the newest frames along that axis, and computes "
        "what is new (<model>_push).",
        ENDS,
        make=Stream,
        common=True,
        metavar="INPUT=AXIS[,hop=FRAMES][,edge=warm]",
        reads="stream",
    )
    prepend: tuple[Prepended, ...] = _option(
        "A model in front, such as one of `mccompile frontend`: its outputs are inputs of the network, by name "
        "or where only one fits.",
        ENDS,
        (),
        metavar="MODEL[,OUTPUT=INPUT]",
        path=True,
        reads="prepended",
        undrawn="a second model, joined before anything is compiled; tests/importers/test_joining.py does that",
    )
    state: Mapping[str, str] = _option(
        "Keep an output inside the model: the next run has it as that input.",
        ENDS,
        make=dict,
        metavar="OUTPUT=INPUT,...",
        reads="states",
    )
    external: tuple[str, ...] = _option(
        "Inputs and outputs outside the arena, behind pointers that the program sets before a run.",
        ENDS,
        (),
        flag="--io",
        metavar="external|NAME=external,...",
        reads="external",
    )
    io_layout: IoLayout = _option(
        "Axis order of image inputs and outputs.", ENDS, "onnx", metavar="onnx|nhwc", draws=("nhwc",), share=0.06
    )
    observe: tuple[str, ...] = _option("Make an inner tensor an output.", ENDS, (), metavar="TENSOR")
    signature: str = _option(
        "Which one, where a TFLite file has several.",
        ENDS,
        "",
        metavar="KEY",
        undrawn="only files of TFLite have several; tests/importers/tflite does that",
    )
    trust: bool = _option(
        "Execute what a model file holds, where it cannot be loaded otherwise (pickles, ...).",
        ENDS,
        False,
        recorded=False,
        undrawn="only files of other tools are loaded by executing them; tests/importers does that",
    )

    profile: bool = _option(
        "Have runs count how long each step takes (<model>_put_profile shows it).", INSIDE, False, share=0.06
    )
    dump_values: bool = _option(
        "Have runs hand out what each step makes (<model>_set_dump), for `mccompile compare`.",
        INSIDE,
        False,
        share=0.06,
    )
    optimize: bool = _option("Leave out all optional passes.", INSIDE, True, flag="-O0", reads="optimized", share=0.2)
    without: frozenset[str] = _option(
        "Leave out one pass, or one kernel: gemm/f32_rows_tile__vec.",
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
        "Write IR and drawings after every pass there.",
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
