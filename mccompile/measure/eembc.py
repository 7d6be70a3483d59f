"""What a program links so that the runner of MLPerf Tiny measures its model: mcc_eembc.h, and what it is told of that.

Invariant: an input is put into the arena in front of every run, since a run may leave something else there. So what is
measured has that in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.near import meant
from ..base.records import dataclass
from ..emit.runtime import runtime_headers
from ..toolchain.model_report import Report, Tensor


@dataclass(frozen=True)
class Benchmark:
    """`sends`: what the bytes of an input are: integers as the model has them, pixels from 0 to 255, or floats."""

    model: str
    sends: str
    rebuilds: bool = False  # one result: how far the output is from the input

    @property
    def judged_by(self) -> str:
        return "area_under_roc" if self.rebuilds else "accuracy"


BENCHMARKS = {
    "kws": Benchmark("kws01", "integers"),
    "ic": Benchmark("ic01", "pixels"),
    "ic02": Benchmark("ic02", "pixels"),
    "vww": Benchmark("vww01", "pixels"),
    "ad": Benchmark("ad01", "floats", rebuilds=True),
    "sww": Benchmark("sww01", "integers"),
}

_LISTENER = "sww01"  # which may run on a stream of samples

_HEADER = """/* NAME_eembc.h: answers the runner of MLPerf Tiny, as the model @MODEL@. */
#ifndef GUARD_EEMBC_H
#define GUARD_EEMBC_H

#include "mcc_eembc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Answers until `read` gives less than 0, which waits for the next byte; `write` sends some, all of them.
 * `microseconds` is a clock. For energy `pin` sets the pin of timestamps, and holds 0 for a microsecond or more; with
 * NULL performance is measured. */
mcc_status NAME_eembc(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                      uint32_t (*microseconds)(void *stream), void (*pin)(void *stream, int level), void *stream);

#ifdef __cplusplus
}
#endif

#endif
"""
_SOURCE = """/* NAME_eembc.c: the model "NAME" as @MODEL@ of MLPerf Tiny. */
#include "NAME_eembc.h"

#include "NAME.h"

extern const uint64_t NAME_weights[]; /* declared again where the blob is external */
extern const size_t NAME_weights_bytes;

static MCC_ALIGNED(GUARD_ARENA_ALIGN) uint8_t arena[GUARD_ARENA_BYTES];
static NAME_model model;
static mcc_eembc board;
static MCC_ALIGNED(8) uint8_t buffer[@SENT@];
@STREAM@
static mcc_status infer(const uint8_t *bytes, uint32_t count)
{
    @TYPE@ *const to = NAME_input_@SYMBOL@(&model);
    if (count != sizeof buffer) return MCC_ERR_SIZE;
@LOAD@
    return @RUN@;
}

static float real(uint32_t at) { return @REAL@; }
@RESULT@
mcc_status NAME_eembc(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                      uint32_t (*microseconds)(void *stream), void (*pin)(void *stream, int level), void *stream)
{
    int byte;
    const mcc_status status = NAME_init(&model, arena, sizeof arena, NAME_weights, NAME_weights_bytes);
    if (status != MCC_OK) return status;
    board.model = "@MODEL@";
    board.buffer = buffer;
    board.capacity = (uint32_t)sizeof buffer;
    board.infer = infer;
    board.result_count = @COUNT@;
    board.result = @GIVES@;
@LISTENS@    board.write = write;
    board.microseconds = microseconds;
    board.pin = pin;
    board.stream = stream;
    mcc_eembc_begin(&board);
    while ((byte = read(stream)) >= 0) mcc_eembc_byte(&board, (uint8_t)byte);
    return MCC_OK;
}
"""
_COPIED = "    memcpy(to, bytes, count);"
_CENTRED = "    for (uint32_t i = 0u; i < count; ++i) to[i] = (int8_t)((int)bytes[i] - 128);"
_QUANTIZED = """    for (uint32_t i = 0u; i < count / 4u; ++i) {
        float x, q;
        memcpy(&x, &bytes[4u * i], 4u);
        q = floorf(x / @IN@_SCALE + 0.5f) + (float)@IN@_ZERO_POINT;
        to[i] = (@TYPE@)(q < @LOW@f ? @LOW@f : q > @HIGH@f ? @HIGH@f : q);
    }"""
_DISTANCE = """
/* The mean square of what the model does not rebuild. */
static float distance(uint32_t at)
{
    float sum = 0.0f;
    for (uint32_t i = 0u; i < @OUT@_COUNT; ++i) {
        float x;
        memcpy(&x, &buffer[4u * i], 4u);
        sum += (real(i) - x) * (real(i) - x);
    }
    (void)at;
    return sum / (float)@OUT@_COUNT;
}
"""


_STREAM = """
/* Of a push: the first score of the last ones. */
static int8_t activations[@HEARD@];

static mcc_status push(void)
{
    const mcc_status status = NAME_push(&model);
    return status == MCC_MORE ? MCC_OK : status; /* as long as it warms up */
}

static mcc_status forget(void) { return NAME_reset(&model); }
static int32_t stored(uint32_t at) { return NAME_output_@MADE@(&model)[at]; }
"""
_LISTENS = """    board.forget = forget;
    board.stored = stored;
    board.activations = activations;
    board.most = (uint32_t)sizeof activations;
"""
_HEARD = 4096  # pushes; 2 minutes of the streaming wake word


def with_scales(content: Mapping[str, Any]) -> frozenset[str]:
    """Inputs and outputs of which a model's header has a scale, by its report: one for all elements."""
    found = [entry for entry in (*content["inputs"], *content["outputs"]) if entry.get("quantized")]
    return frozenset(entry["name"] for entry in found if len(entry["quantized"]["scales"]) == 1)


def eembc_files(report: Report, benchmark: str, quantized: frozenset[str]) -> dict[str, bytes]:
    """By their places in the output folder. `quantized`: inputs and outputs of which the header has a scale."""
    if benchmark not in BENCHMARKS:
        fix = meant(benchmark, BENCHMARKS) or f"choose one of {', '.join(BENCHMARKS)}"
        raise WrongUse(Problem(f"there is no benchmark {benchmark!r}", "--mlperf-tiny", "", fix))
    asked = BENCHMARKS[benchmark]
    _refuse(report, asked, quantized)
    (given,), (made,) = report.inputs, report.outputs
    real = f"NAME_output_{made.symbol}(&model)[at]"
    if not made.dtype.is_float:
        real = f"(float)((int32_t){real} - @OUT@_ZERO_POINT) * @OUT@_SCALE"
    parts = {
        "RESULT": _DISTANCE if asked.rebuilds else "",
        "LOAD": _load(asked, given),
        "REAL": real,
        "GIVES": "distance" if asked.rebuilds else "real",
        "RUN": "push()" if report.warm_up else "NAME_run(&model)",
        "STREAM": _STREAM if report.warm_up else "",
        "LISTENS": _LISTENS if report.warm_up else "",
        "HEARD": f"{_HEARD}",
        "MADE": made.symbol,
        "COUNT": "1u" if asked.rebuilds else "@OUT@_COUNT",
        "SENT": f"{_bytes_sent(asked, given)}u",
        "TYPE": given.dtype.storage_c,
        "SYMBOL": given.symbol,
        "IN": f"GUARD_INPUT_{given.symbol.upper()}",
        "OUT": f"GUARD_OUTPUT_{made.symbol.upper()}",
        "MODEL": asked.model,
    }
    source, header = _SOURCE, _HEADER
    for word, text in parts.items():
        source, header = (each.replace(f"@{word}@", text) for each in (source, header))
    if "floorf" in source:
        source = source.replace("#include", "#include <math.h>\n\n#include", 1)
    texts = {f"{report.prefix}_eembc.h": header, f"{report.prefix}_eembc.c": source}
    name = report.prefix
    texts = {path: text.replace("NAME", name).replace("GUARD", name.upper()) for path, text in texts.items()}
    return {path: text.encode() for path, text in (texts | runtime_headers(["mcc_eembc.h"])).items()}


def _bytes_sent(asked: Benchmark, given: Tensor) -> int:
    return given.nbytes // (given.dtype.bits // 8) * 4 if asked.sends == "floats" else given.nbytes


def _load(asked: Benchmark, given: Tensor) -> str:
    kind = str(given.dtype)
    if asked.sends == "pixels":
        return _COPIED if kind == "u8" else _CENTRED
    if asked.sends == "floats" and not given.dtype.is_float:
        low, high = ("0.0", "255.0") if kind == "u8" else ("-128.0", "127.0")
        return _QUANTIZED.replace("@LOW@", low).replace("@HIGH@", high)
    return _COPIED


def _refuse(report: Report, asked: Benchmark, quantized: frozenset[str]) -> None:
    tensors = (*report.inputs, *report.outputs)
    listens = bool(report.warm_up) and asked.model == _LISTENER
    samples = ("i16",) if listens else ()
    bytes_only = [tensor for tensor in report.inputs if str(tensor.dtype) not in ("i8", "u8", *samples)]
    reasons = {
        "it has not one input and one output": len(report.inputs) != 1 or len(report.outputs) != 1,
        "it is a module": bool(report.module),
        "it has several arenas": len(report.arenas) > 1,
        "it keeps state between runs": bool(report.states or report.state_bytes) and not listens,
        "its scores are not bytes": listens and any(str(t.dtype) not in ("i8", "u8") for t in report.outputs),
        "it learns": bool(report.phases),
        "sizes are known only at run time": not all(tensor.is_static for tensor in tensors),
        "its input or output lies outside the arena": any(tensor.room for tensor in tensors),
        f"{asked.model} sends bytes, and its input has none": asked.sends != "floats" and bool(bytes_only),
        "integers of it have no scale": any(
            str(tensor.dtype) in ("i8", "u8") and tensor.name not in quantized
            for tensor in (report.outputs if asked.sends != "floats" else tensors)
        ),
        "it gives neither floats nor bytes": any(str(t.dtype) not in ("f32", "i8", "u8") for t in report.outputs),
        "its input is neither floats nor bytes": any(
            str(tensor.dtype) not in ("f32", "i8", "u8", *samples) for tensor in report.inputs
        ),
        "its output has not the size of its input": asked.rebuilds
        and [t.shape[1:] for t in report.inputs] != [t.shape[1:] for t in report.outputs],
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        fix = "give the network that the benchmark is about, quantized to int8"
        raise WrongUse(Problem(f"this model is not {asked.model} of MLPerf Tiny", report.prefix, why, fix))
