"""Flags that several commands share, and the `Options` that they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Read = TypeVar("Read")


def _choice(flag: str, values: list[str], default: str, text: str) -> Callable[[Any], Any]:
    return click.option(flag, type=click.Choice(values), default=default, show_default=True, help=text)


_dim = click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME=SIZE,...",
    help="Sizes of free dimensions, or their ranges: batch=1..8,time=1..64.",
)
_shape = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="INPUT=1,3,32,32",
    help="Shape of an input; of a sequence, that of every element, or [4],[3] those of all.",
)
_signature = click.option("--signature", default="", metavar="KEY", help="Which one, where a TFLite file has several.")
trust_flag = click.option(
    "--trust", is_flag=True, help="Execute what a model file holds, where it cannot be loaded otherwise (pickles, ...)."
)
MODEL_OPTIONS = [
    click.option(
        "--target",
        default="generic",
        show_default=True,
        help="A target's name (`mccompile targets`) or TOML file; or several, with commas between. See --board.",
    ),
    click.option(
        "--board",
        default="",
        metavar="NAME",
        help="A board or a chip by its name (`mccompile boards`), such as nucleo_f446re: sets the target, and budgets "
        "of RAM and weights where --budget gives none.",
    ),
    click.option(
        "--prefer",
        default="",
        metavar="ram|time|flash|balanced",
        help="Optimize for RAM, time, flash, or RAM times time (balanced); the target has a default.",
    ),
    click.option("--name", default="", help="Name of the model and prefix in C; default: the file's name."),
    _dim,
    _shape,
    click.option(
        "--bound",
        "bounds",
        multiple=True,
        metavar="NAME=COUNT,...",
        help="Upper bounds of sizes that depend on data, by the name of a tensor or a dimension: selected=100.",
    ),
    _signature,
    click.option(
        "--prepend",
        multiple=True,
        type=click.Path(),
        metavar="MODEL[,OUTPUT=INPUT]",
        help="A model in front, such as one of `mccompile frontend`: its outputs are inputs of the network, by name "
        "or where only one fits.",
    ),
    trust_flag,
    click.option("-O0", "plain", is_flag=True, help="Leave out all optional passes."),
    click.option(
        "--without",
        multiple=True,
        metavar="PASS|KERNEL",
        help="Leave out one pass, or one kernel: gemm/f32_rows_tile__vec.",
    ),
    click.option("--planner", default="", help="Memory planner; default: chosen to suit the options."),
    _choice(
        "--rows",
        ["off", "auto"],
        "auto",
        "Run chains of convolutions row by row where that saves memory (and ram is preferred), "
        "and MLPs by blocks of rows.",
    ),
    click.option(
        "--recompute",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="Compute in strips of columns where that takes less memory, with up to so many times the "
        "multiply-accumulates: 1.3.",
    ),
    click.option(
        "--winograd",
        type=click.Choice(["off", "2", "4"]),
        help="Largest tile of Winograd's convolution: faster where time is preferred, with larger weights and "
        "errors near 2e-6 of the largest result (2: 1e-6; integers are exact). The target has a default.",
    ),
    click.option(
        "--float-error",
        type=float,
        metavar="FRACTION",
        help="How far rounding errors of float products may move an output, of its largest element, as estimated from "
        "the weights: 1e-6. Smaller ones take time. Default: 3e-5, where that is worth its time.",
    ),
    click.option(
        "--budget",
        multiple=True,
        metavar="KIND=SIZE,...",
        help="Fail above a limit: ram=96K (the arena), flash=512K (code and weights), weights=400K, stack=2K, "
        "instructions=2M. All but ram and weights are measured with the target's compiler and emulator.",
    ),
    click.option(
        "--mem",
        multiple=True,
        metavar="NAME=SIZE[,fast]",
        help="A memory for tensors, with an arena of its own: dtcm=64K,fast then sram=256K. The fast ones get what is "
        "read and written most.",
    ),
    click.option(
        "--weights-section", default="", metavar="NAME", help="Section of the linker for the weights, such as .qspi."
    ),
    _choice(
        "--blob",
        ["array", "incbin", "external"],
        "array",
        "How programs get the weights: as a C array, brought in by the assembler, or by themselves from the .mcb.",
    ),
    click.option(
        "--wrapper",
        "wrappers",
        multiple=True,
        metavar="cpp",
        help="Write what other languages use the model by, too: cpp, a header with spans and RAII.",
    ),
    click.option("--single-file", is_flag=True, help="Write one C file and one header, with everything in them."),
    click.option(
        "--module",
        is_flag=True,
        help="Make code and weights one file that runs from any address: firmware loads it (runtime/mcc_module.h), so "
        "another architecture can be sent over the air.",
    ),
    click.option(
        "--threads",
        default=1,
        show_default=True,
        metavar="COUNT",
        help="Workers that may share a long step; the program says how they run (<model>_set_parallel).",
    ),
    click.option(
        "--weights-dtype",
        type=click.Choice(["f16", "bf16"]),
        help="Store weights of convolutions and matrix products in half the bytes; `check` says what that changes.",
    ),
    click.option(
        "--block-activations",
        default="model",
        show_default=True,
        type=click.Choice(["model", "float", "int8"]),
        help="Multiply weights of few bits with activations as they are, or rounded to int8 in blocks, a faster way; "
        "model: rounded where the model permits it (accuracy_level=4). `check` says what that changes.",
    ),
    click.option(
        "--updatable",
        is_flag=True,
        help="Quantized: make code that suits other scales and zero points too, so that `mccompile blob` can bring "
        "weights trained anew to it. Costs a few instructions per element.",
    ),
    click.option("--slices", is_flag=True, help="Let programs run a few steps at a time (<model>_run_steps)."),
    click.option(
        "--profile", is_flag=True, help="Have runs count how long each step takes (<model>_put_profile shows it)."
    ),
    click.option(
        "--dump-values",
        is_flag=True,
        help="Have runs hand out what each step makes (<model>_set_dump), for `mccompile compare`.",
    ),
    click.option("--keep-inputs", is_flag=True, help="A run must not overwrite the model's inputs."),
    click.option("--io-layout", default="onnx", metavar="onnx|nhwc", help="Axis order of image inputs and outputs."),
    click.option(
        "--io",
        "external",
        multiple=True,
        metavar="external|NAME=external,...",
        help="Inputs and outputs outside the arena, behind pointers that the program sets before a run.",
    ),
    click.option(
        "--state",
        multiple=True,
        metavar="OUTPUT=INPUT,...",
        help="Keep an output inside the model: the next run has it as that input.",
    ),
    click.option(
        "--stream",
        multiple=True,
        metavar="INPUT=AXIS[,hop=FRAMES][,edge=warm]",
        help="Run a network over windows frame by frame: a run takes the newest frames along that axis, and computes "
        "what is new (<model>_push).",
    ),
    click.option(
        "--input",
        "input_forms",
        multiple=True,
        metavar="NAME=u8,nhwc,bgr,rows,mean=..,scale=..",
        help="Element type and layout that the program passes; the model gets (input - mean) * scale. With `rows` a "
        "function of the program's gives them row by row, and the input never lies in memory whole. Frames of a "
        "camera: NAME=nv21,resize=bilinear:640x480,crop=X:Y:WxH,letterbox; also nv12, yuyv, rgb565, gray, rgb.",
    ),
    click.option(
        "--output",
        "output_forms",
        multiple=True,
        metavar="NAME=argmax|raw|nhwc|scale=..,zero=..",
        help="Form in which the program gets an output.",
    ),
    click.option(
        "--quantize",
        type=click.Path(path_type=Path),
        metavar="SAMPLES",
        help="Quantize to int8 first, with ranges from these samples (see `mccompile quantize`).",
    ),
    _choice(
        "--calibrate",
        ["minmax", "percentile", "entropy"],
        "minmax",
        "How quantization ranges are derived from samples.",
    ),
    click.option("--observe", multiple=True, metavar="TENSOR", help="Make an inner tensor an output."),
    click.option(
        "--kernels",
        multiple=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="A folder with kernels of your own.",
    ),
    click.option(
        "--external",
        "functions",
        multiple=True,
        metavar="OPERATOR=FUNCTION[,include=FILE]",
        help="A C function of your own computes an operator, a node, or what lies between tensors (FIRST..LAST). "
        "Also: python=FILE, result=f32:1x8, workspace=BYTES, align=BYTES, nhwc, strided.",
    ),
    click.option(
        "--tuned",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Choose kernels by what `mccompile tune` has measured, where FILE has it; "
        "--tuned default: the file that comes with mccompile.",
    ),
    click.option("--print-after", multiple=True, metavar="PASS", help="Print the IR after a pass, or after `all`."),
    click.option(
        "--dump", metavar="DIR", type=click.Path(path_type=Path), help="Write IR and drawings after every pass there."
    ),
]


def understood(flag: str, reader: Callable[[Any], Read], given: Any) -> Read:
    """What stands behind a flag, read; what cannot be read is told with its flag."""
    try:
        return reader(given)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=flag) from None


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say how a file is read; the command gets them as one argument, `reading`."""

    def collected(**values: Any) -> Any:
        from .. import option_texts
        from ..importers.api import Reading

        dims = understood("--dim", option_texts.dims, values.pop("dims"))
        shapes = understood("--shape", option_texts.shapes, values.pop("shapes"))
        signature, trust = values.pop("signature"), values.pop("trust")
        return command(reading=Reading(signature, trust, dims=dims, shapes=shapes), **values)

    collected.__doc__, collected.__name__ = command.__doc__, command.__name__
    for option in (trust_flag, _shape, _dim, _signature):
        collected = option(collected)
    return collected


def model_options(command: Callable[..., Any], but: str = "") -> Callable[..., Any]:
    """Options that become `Options`; the command gets them as one argument, `options`. `but`: one that it has not."""

    def collected(**values: Any) -> Any:
        from .. import option_texts
        from ..driver import Options
        from ..passes.api import BlockActivations, WeightsDtype
        from ..passes.io.io_forms import parse_input, parse_output
        from ..quantize.quantize import Recipe

        given = Options(
            target=values.pop("target"),
            board=values.pop("board"),
            prefer=values.pop("prefer"),
            name=values.pop("name"),
            dims=understood("--dim", option_texts.dims, values.pop("dims")),
            shapes=understood("--shape", option_texts.shapes, values.pop("shapes")),
            bounds=understood("--bound", option_texts.bounds, values.pop("bounds")),
            signature=values.pop("signature"),
            prepend=understood("--prepend", option_texts.prepended, values.pop("prepend")),
            trust=values.pop("trust"),
            optimize=not values.pop("plain"),
            without=frozenset(values.pop("without")),
            planner=values.pop("planner"),
            rows=values.pop("rows"),
            recompute=values.pop("recompute"),
            budget=understood("--budget", option_texts.budget, values.pop("budget")),
            mem=understood("--mem", option_texts.pools, values.pop("mem")),
            weights_section=values.pop("weights_section"),
            winograd=understood("--winograd", option_texts.winograd, values.pop("winograd")),
            float_error=values.pop("float_error"),
            threads=values.pop("threads"),
            block_activations=BlockActivations(values.pop("block_activations")),
            weights_dtype=WeightsDtype(values.pop("weights_dtype") or ""),
            updatable=values.pop("updatable"),
            keep_inputs=values.pop("keep_inputs"),
            slices=values.pop("slices"),
            profile=values.pop("profile"),
            dump_values=values.pop("dump_values"),
            wrappers=tuple(dict.fromkeys(values.pop("wrappers"))),
            single_file=values.pop("single_file"),
            module=values.pop("module"),
            blob=values.pop("blob"),
            io_layout=values.pop("io_layout"),
            external=understood("--io", option_texts.external, values.pop("external")),
            state=understood("--state", option_texts.states, values.pop("state")),
            stream=understood("--stream", option_texts.stream, values.pop("stream")),
            inputs=understood("--input", lambda texts: dict(map(parse_input, texts)), values.pop("input_forms")),
            outputs=understood("--output", lambda texts: dict(map(parse_output, texts)), values.pop("output_forms")),
            quantize=values.pop("quantize", None),
            recipe=Recipe(values.pop("calibrate")),
            observe=values.pop("observe"),
            kernels=values.pop("kernels"),
            functions=understood("--external", option_texts.functions, values.pop("functions")),
            tuned=values.pop("tuned"),
            print_after=frozenset(values.pop("print_after")),
            dump=values.pop("dump"),
        )
        return command(options=given, **values)

    collected.__doc__, collected.__name__ = command.__doc__, command.__name__
    for option in reversed(MODEL_OPTIONS):
        collected = option(collected)
    params: list[click.Parameter] = vars(collected)["__click_params__"]
    params[:] = [param for param in params if but not in param.opts]
    return collected


def quantizing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those of a model for the command that quantizes itself: its samples are --data."""
    return model_options(command, but="--quantize")


model_argument = click.argument("model", type=click.Path(path_type=Path))
executor_option = click.option(
    "--executor", default="", metavar="dask://HOST:PORT", help="Workers of dask do the jobs; default: this machine."
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
samples_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="SAMPLES",
    help="An .npz file of arrays named like the inputs, an .npy file, or a folder with test_data_set_* folders.",
)
