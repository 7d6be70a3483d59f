"""What a program links so that a host runs its model over a serial line: mcc_serve.h, and what it is told of the model.

Invariant: arenas, and memory outside of them, are the server's own; the host sees inputs, outputs, state and ticks.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base.dtypes import string
from ..base.errors import Problem, WrongUse
from ..base.records import dataclass
from ..emit.runtime import runtime_headers
from ..toolchain.model_report import Report, Tensor

_HEADER = """/* NAME_serve.h: answers a host over a serial line (`mccompile check --serial`, bench, compare). */
#ifndef GUARD_SERVE_H
#define GUARD_SERVE_H

#include "mcc_serve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves until `read` gives less than 0. It waits for the next byte; `write` sends some, all of them. */
void NAME_serve(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                void *stream);

/* Before that, where the host shall be told how much stack a run takes: the lowest address of the stack that serves. */
void NAME_serve_stack(uint32_t *lowest);

/* Before that, where the host may send other weights: `blob` has room for GUARD_WEIGHTS_BYTES bytes, aligned as the
 * model's header asks; `store` puts a piece there, and gives MCC_OK. The first is at offset 0, and each comes once,
 * behind the one before. From then on the model runs on `blob`. */
void NAME_serve_updates(const void *blob, mcc_status (*store)(uint32_t offset, const uint8_t *bytes, size_t count));

#ifdef __cplusplus
}
#endif

#endif
"""
_SOURCE = """/* NAME_serve.c: the model "NAME" behind a serial line. */
#include "NAME_serve.h"

#include "NAME.h"
{includes}
extern const uint64_t NAME_weights[]; /* declared again where the blob is external */
extern const size_t NAME_weights_bytes;

{memory}
static NAME_model model;
static mcc_serve_area areas[] = {{{areas}}};
static mcc_serve server;
static const void *room; /* for another blob */
static mcc_status (*keep)(uint32_t offset, const uint8_t *bytes, size_t count);

static mcc_status init(void)
{{
    const void *const blob = server.blob;
    mcc_status status = NAME_init(&model, {arguments}, blob, NAME_weights_bytes);
{placed}    if (status != MCC_OK) return status;
{places}    return status;
}}

{functions}
static mcc_status store(uint32_t offset, const uint8_t *bytes, size_t count)
{{
    if (offset > NAME_weights_bytes || count > NAME_weights_bytes - offset) return MCC_ERR_BLOB_SIZE;
    server.blob = (const uint8_t *)room;
    return keep(offset, bytes, count);
}}

void NAME_serve_stack(uint32_t *lowest) {{ server.stack = lowest; }}

void NAME_serve_updates(const void *blob, mcc_status (*put)(uint32_t offset, const uint8_t *bytes, size_t count))
{{
    room = blob;
    keep = put;
    server.store = store;
    server.can |= MCC_SERVE_STORES;
}}

void NAME_serve(int (*read)(void *stream), void (*write)(void *stream, const uint8_t *bytes, size_t count),
                void *stream)
{{
    int byte;
    server.blob = (const uint8_t *)(const void *)NAME_weights;
    server.areas = areas;
    server.area_count = {count}u;
    server.init = init;
    server.run = run;
{tells}    server.read = read;
    server.write = write;
    server.stream = stream;
    while ((byte = read(stream)) >= 0) mcc_serve_byte(&server, (uint8_t)byte);
}}
"""


def server_files(report: Report) -> dict[str, bytes]:
    """By their places in the output folder."""
    refuse_unserved(report)
    name = report.prefix
    source = _Source(report)
    texts = {f"{name}_serve.h": _HEADER, f"{name}_serve.c": source.text()}
    texts = {path: text.replace("NAME", name).replace("GUARD", name.upper()) for path, text in texts.items()}
    headers = ["mcc_serve.h", *(["mcc_serve_dump.h"] if report.dumped else [])]
    return {path: text.encode() for path, text in (texts | runtime_headers(headers)).items()}


@dataclass(frozen=True)
class _Source:
    """<model>_serve.c: its parts are text in which NAME is the model's prefix, and GUARD that in capitals."""

    report: Report

    def text(self) -> str:
        areas = list(self._areas())
        places = [f"    areas[{number}].at = (uint8_t *)(uintptr_t){at};" for number, (at, _, _) in enumerate(areas)]
        return _SOURCE.format(
            includes=_lines(['#include "mcc_serve_dump.h"'] if self.report.dumped else []),
            memory="\n".join(self._memory()),
            areas=", ".join(f"{{NULL, {nbytes}, {written}}}" for _, nbytes, written in areas),
            count=len(areas),
            arguments=", ".join(f"{arena}, sizeof {arena}" for arena in self._arenas()),
            placed=_lines(f"    if (status == MCC_OK) status = {call};" for call in self._placed()),
            places=_lines(places),
            functions="\n".join(self._functions()),
            tells=_lines(self._tells()),
        )

    def _arenas(self) -> list[str]:
        return [f"arena{f'_{arena.pool.lower()}' if arena.pool else ''}" for arena in self.report.arenas]

    @property
    def _shaped(self) -> list[Tensor]:
        """Outputs whose sizes are known after a run."""
        return [tensor for tensor in self.report.outputs if not tensor.is_static]

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        yield from (("input", tensor) for tensor in self.report.inputs)
        yield from (("output", tensor) for tensor in self.report.outputs)

    def _memory(self) -> Iterator[str]:
        for arena in self._arenas():
            macro = f"GUARD_{arena.upper()}"
            yield f"static MCC_ALIGNED({macro}_ALIGN) uint8_t {arena}[{macro}_BYTES];"
        for way, tensor in self._tensors():
            name = f"{way}_{tensor.symbol}"
            if tensor.room:
                yield f"static MCC_ALIGNED({max(tensor.align, 8)}) uint8_t {name}[{tensor.room}];"
            if tensor.rows:
                rows = f"{{{name}, {tensor.rows.bytes}u, {tensor.rows.count}, 0}}"
                yield f"static mcc_array_rows rows_{name} = {rows};"
        if self.report.state_bytes:
            yield f"static uint8_t state[{self.report.state_bytes}];"
        if self.report.given:
            yield f"static uint32_t sizes[{len(self.report.given)}];"
        if self._shaped:
            yield f"static uint32_t shapes[{sum(len(tensor.shape) for tensor in self._shaped)}];"

    def _areas(self) -> Iterator[tuple[str, str, int]]:
        """Where one lies, its bytes, and whether it is written to."""
        for way, tensor in self._tensors():
            name = f"{way}_{tensor.symbol}"
            yield name if tensor.room else f"NAME_{name}(&model)", f"{tensor.nbytes}u", int(way == "input")
        if self.report.state_bytes:
            yield "state", "sizeof state", 1
        if self.report.given:
            yield "sizes", "sizeof sizes", 1
        if self._shaped:
            yield "shapes", "sizeof shapes", 0
        if self.report.profiled:
            yield "model.ticks", "sizeof model.ticks", 0

    def _placed(self) -> Iterator[str]:
        for way, tensor in self._tensors():
            name = f"{way}_{tensor.symbol}"
            if tensor.rows:
                yield f"NAME_set_{name}(&model, mcc_fetch_array, &rows_{name})"
            elif tensor.room:
                yield f"NAME_set_{name}(&model, ({tensor.dtype.storage_c} *)(void *){name})"

    def _begins(self) -> Iterator[str]:
        if self.report.dumped:
            yield "    NAME_set_dump(&model, (how & MCC_SERVE_TO_STOP) != 0u ? mcc_serve_stop : NULL, &server);"
        if self.report.given:
            sizes = ", ".join(f"(mcc_index)sizes[{number}]" for number in range(len(self.report.given)))
            yield f"    status = NAME_resize(&model, {sizes});"
        if self.report.state_bytes:
            yield "    if (status != MCC_OK) return status;"
            yield "    if ((how & MCC_SERVE_RESET) != 0u) status = NAME_reset(&model);"
            yield "    if ((how & MCC_SERVE_LOAD) != 0u) status = NAME_load_state(&model, state);"
        if self.report.sliced:
            yield "    if (status == MCC_OK) status = NAME_begin(&model);"

    def _ends(self) -> Iterator[str]:
        if self.report.state_bytes:
            yield "    status = NAME_save_state(&model, state);"
        at = 0
        for tensor in self._shaped:
            rank = len(tensor.shape)
            if rank:
                yield f"    {{\n        size_t shape[{rank}], i;"
                yield f"        NAME_output_{tensor.symbol}_shape(&model, shape);"
                yield f"        for (i = 0; i < {rank}u; i++) shapes[{at}u + i] = (uint32_t)shape[i];\n    }}"
            at += rank

    def _functions(self) -> Iterator[str]:
        begins = list(self._begins())
        if begins:
            yield "static mcc_status begin(uint8_t how)\n{\n    mcc_status status = MCC_OK;\n    (void)how;"
            yield from begins
            yield "    return status;\n}\n"
        call = "NAME_run_steps(&model, 1u)" if self.report.sliced else "NAME_run(&model)"
        yield f"static mcc_status run(void) {{ return {call}; }}\n"
        ends = list(self._ends())
        if ends:
            yield "static mcc_status end(void)\n{\n    mcc_status status = MCC_OK;"
            yield from ends
            yield "    return status;\n}\n"

    def _tells(self) -> Iterator[str]:
        can = {"STOPS": self.report.dumped, "TIMES": bool(self.report.profiled), "STATE": bool(self.report.state_bytes)}
        flags = " | ".join(f"MCC_SERVE_{flag}" for flag, holds in can.items() if holds)
        if flags:
            yield f"    server.can |= {flags};"
        if list(self._begins()):
            yield "    server.begin = begin;"
        if list(self._ends()):
            yield "    server.end = end;"
        if self.report.dumped:
            yield "    server.record = mcc_serve_record;"


def _lines(lines: list[str] | Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def refuse_unserved(report: Report) -> None:
    """What a serial line has no frames for."""
    tensors = (*report.inputs, *report.outputs)
    reasons = {
        "it is a module": bool(report.module),
        "it learns": bool(report.phases),
        "it has text as input or output": any(tensor.dtype is string for tensor in tensors),
        "it has more than 250 inputs and outputs": len(tensors) > 250,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        fix = "check it under emulation, without --serial"
        raise WrongUse(Problem("this model is not served over a serial line", report.prefix, why, fix))
