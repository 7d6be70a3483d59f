"""What a program links so that a host runs its model over a serial line: mcc_serve.h, and what it is told of the model.

Invariant: the arena is the server's own, and the host sees inputs and outputs alone.
"""

from __future__ import annotations

from ..base.dtypes import string
from ..base.errors import Problem, WrongUse
from ..emit.runtime import runtime_headers
from ..toolchain.model_report import Report

_HEADER = """/* NAME_serve.h: answers a host that checks the model over a serial line (`mccompile check --serial`). */
#ifndef GUARD_SERVE_H
#define GUARD_SERVE_H

#include "mcc_serve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves until `read` gives less than 0. It waits for the next byte; `write` sends some, all of them. */
void NAME_serve(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                void *stream);

#ifdef __cplusplus
}
#endif

#endif
"""
_SOURCE = """/* NAME_serve.c: the model "NAME" behind a serial line. */
#include "NAME_serve.h"

#include "NAME.h"

extern const uint64_t NAME_weights[]; /* declared again where the blob is external */
extern const size_t NAME_weights_bytes;

static MCC_ALIGNED(GUARD_ARENA_ALIGN) uint8_t arena[GUARD_ARENA_BYTES];
static NAME_model model;
static mcc_serve_area areas[] = {AREAS};
static mcc_serve server;

static mcc_status begin(void)
{
    const mcc_status status = NAME_init(&model, arena, sizeof arena, NAME_weights, NAME_weights_bytes);
    if (status != MCC_OK) return status;
PLACES
    return MCC_OK;
}

static mcc_status run(void) { return NAME_run(&model); }

void NAME_serve(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                void *stream)
{
    int byte;
    server.blob = (const uint8_t *)(const void *)NAME_weights;
    server.areas = areas;
    server.area_count = COUNTu;
    server.init = begin;
    server.run = run;
    server.write = write;
    server.stream = stream;
    while ((byte = read(stream)) >= 0) mcc_serve_byte(&server, (uint8_t)byte);
}
"""


def server_files(report: Report) -> dict[str, bytes]:
    """By their places in the output folder."""
    refuse_unserved(report)
    name = report.prefix
    areas = [(f"{name}_input_{t.symbol}", t.nbytes, 1) for t in report.inputs]
    areas += [(f"{name}_output_{t.symbol}", t.nbytes, 0) for t in report.outputs]
    places = (f"    areas[{n}].at = (uint8_t *)(uintptr_t){call}(&model);" for n, (call, _, _) in enumerate(areas))
    source = _SOURCE.replace("AREAS", ", ".join(f"{{NULL, {nbytes}u, {is_input}}}" for _, nbytes, is_input in areas))
    source = source.replace("PLACES", "\n".join(places)).replace("COUNT", str(len(areas)))
    texts = {f"{name}_serve.h": _HEADER, f"{name}_serve.c": source}
    texts = {path: text.replace("NAME", name).replace("GUARD", name.upper()) for path, text in texts.items()}
    return {path: text.encode() for path, text in (texts | runtime_headers(["mcc_serve.h"])).items()}


def refuse_unserved(report: Report) -> None:
    """What a serial line has no frames for."""
    tensors = (*report.inputs, *report.outputs)
    reasons = {
        "it is a module": bool(report.module),
        "it has several arenas": len(report.arenas) > 1,
        "it keeps state between runs": bool(report.states or report.state_bytes),
        "it learns": bool(report.phases),
        "sizes are known only at run time": not all(tensor.is_static for tensor in tensors),
        "it has text as input or output": any(tensor.dtype is string for tensor in tensors),
        "inputs or outputs lie outside the arena": any(tensor.room for tensor in tensors),
        "it has more than 255 inputs and outputs": len(tensors) > 255,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        fix = "check it under emulation, without --serial"
        raise WrongUse(Problem("this model is not served over a serial line", report.prefix, why, fix))
