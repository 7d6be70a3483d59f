"""A network that learns as a program: what it is given by a file, and what it tells after every call."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.toolchain.learning import TrainingRecord
from mccompile.toolchain.model_report import Report, Tensor
from tests.flash import SLOTS
from tests.fuzz.machines import Build

from .drawn import Drawn

SECONDS = 120
SAVED = "saved.bin"  # in the folder: both slots, behind the last batch

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{p}.h"
{slots}
#define DO(call) do {{ mcc_status s = (call); if (s != MCC_OK) return failed(s); }} while (0)
static int failed(mcc_status s) {{ fprintf(stderr, "%s\\n", mcc_status_text(s)); return 2; }}
static {p}_model m;
static FILE *given;
static int take(void *to, size_t bytes) {{ return !bytes || fread(to, bytes, 1, given) == 1; }}
static void tell(const void *from, size_t bytes) {{ if (bytes) fwrite(from, bytes, 1, stdout); }}
static int fill(int with_target)
{{
    if (!({fill})) return 0;
    return !with_target || take({p}_input_target(&m), {P}_INPUT_TARGET_BYTES);
}}
static void weights(void) {{ {weights} }}
static void *aligned(char *room, size_t to) {{ return room + (to - (uintptr_t)room % to) % to; }}
{shared}
static void sums(void) {{ {sums} }}
int main(int count, char **words)
{{
    char *room[{arenas}];
    char *blob = malloc({p}_weights_bytes + 64);
    FILE *saved;
    given = count > 2 ? fopen(words[1], "rb") : NULL;
    if (!given || !blob) return 3;
    {rooms}
    memcpy(aligned(blob, 64), {p}_weights, {p}_weights_bytes);
    DO({p}_init(&m, {given}, aligned(blob, 64), {p}_weights_bytes));
    {share}
    weights();
    for (int batch = 0; batch < {batches}; ++batch) {{
        float loss;
        if (!fill(1)) return 4;
        {learn}
        loss = {p}_loss(&m);
        tell(&loss, sizeof loss);
        sums();
        {step}
        weights();
        if (!fill(0)) return 4;
        DO({p}_run(&m));
        tell({p}_output_{output}(&m), {P}_OUTPUT_{OUTPUT}_BYTES);
    }}
    memset(flash, 0xFF, sizeof flash);
    power = 1L << 30;
    DO({p}_save(&m, &store));
    saved = fopen(words[2], "wb");
    if (!saved || fwrite(flash, sizeof flash, 1, saved) != 1 || fclose(saved)) return 5;
    DO({p}_forget(&m));
    weights();
    fclose(given);
    for (int arena = 0; arena < {arenas}; ++arena) free(room[arena]);
    free(blob);
    return 0;
}}
"""


BACKWARDS = """
static void backwards(void *pool, mcc_index count, void (*body)(void *, mcc_index), void *context)
{
    (void)pool;
    while (count-- > 0) body(context, count);
}
"""


class Died(Exception):
    """With a verdict, and what was said."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def run(drawn: Drawn, folder: Path, report: Report, build: Build) -> TrainingRecord:
    """Builds and runs the code in a folder."""
    learned = [state for state in report.states if state.name in report.initial]
    names = {f"{state.name}.gradient" for state in learned}  # running averages have none
    sums = [state for state in report.states if state.name in names]
    output = next(tensor for tensor in report.outputs if tensor.name == drawn.output)
    is_shared = f"{report.prefix}_set_parallel(" in (folder / f"{report.prefix}.h").read_text(encoding="utf-8")
    text = _main(drawn, report, learned, sums, output, is_shared)
    (folder / "main.c").write_text(text, encoding="utf-8")
    program = folder / "program"
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    words = [build.compiler, *_flags(build), f"-I{folder}", f"-I{folder / 'runtime'}", *sources]
    _call([*words, "-o", str(program), "-lm"], "no-build")
    (folder / "given").write_bytes(b"".join(_given(drawn, report)))
    told = _call([*build.command, str(program), str(folder / "given"), str(folder / SAVED)], "died")
    return _read(told, drawn, learned, sums, output)


def _flags(build: Build) -> list[str]:
    return [*build.flags, "-static"] if build.command else list(build.flags)


def _main(
    drawn: Drawn, report: Report, learned: Sequence[Tensor], sums: Sequence[Tensor], output: Tensor, is_shared: bool
) -> str:
    arenas = [f"{report.prefix.upper()}_ARENA{f'_{a.pool.upper()}' if a.pool else ''}" for a in report.arenas]
    rooms = [f"if (!(room[{n}] = malloc({a}_BYTES + {a}_ALIGN))) return 3;" for n, a in enumerate(arenas)]
    p, rate, every = report.prefix, f"{drawn.optimizer.lr!r}f", drawn.asked.accumulate
    inputs = [tensor for tensor in report.inputs if tensor.name != "target"]
    takes = [f"take({p}_input_{t.symbol}(&m), {p.upper()}_INPUT_{t.symbol.upper()}_BYTES)" for t in inputs]
    return MAIN.format(
        p=p,
        P=p.upper(),
        slots=SLOTS.replace("NET_", f"{p.upper()}_"),
        fill=" && ".join(takes) or "1",
        weights=_tells(p, learned),
        sums=_tells(p, sums),
        batches=len(drawn.batches),
        learn=f"DO({p}_learn(&m{f', {rate}' if drawn.asked.at_once else ''}));",
        step="" if drawn.asked.at_once else f"if (batch % {every} == {every - 1}) DO({p}_step(&m, {rate}));",
        arenas=len(arenas),
        rooms="\n    ".join(rooms),
        given=", ".join(f"aligned(room[{n}], {a}_ALIGN), {a}_BYTES" for n, a in enumerate(arenas)),
        shared=BACKWARDS if is_shared else "",
        share=f"DO({p}_set_parallel(&m, backwards, NULL));" if is_shared else "",
        output=output.symbol,
        OUTPUT=output.symbol.upper(),
    )


def _tells(p: str, states: Sequence[Tensor]) -> str:
    return " ".join(f"tell({p}_state_{state.symbol}(&m), {state.nbytes}u);" for state in states)


def _given(drawn: Drawn, report: Report) -> list[bytes]:
    found = []
    for batch in drawn.batches:
        ins = [batch[tensor.name].tobytes() for tensor in report.inputs if tensor.name != "target"]
        found += [*ins, batch["target"].tobytes(), *ins]
    return found


def _call(words: Sequence[str], kind: str) -> bytes:
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Died("hang", f"{words[0]} took more than {SECONDS} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        kind = "sanitizer" if re.search(r"Sanitizer|runtime error", said) else kind
        raise Died(kind, f"{Path(words[0]).name} ended with {done.returncode}: {said[:1500]}")
    return done.stdout


def _read(
    told: bytes, drawn: Drawn, learned: Sequence[Tensor], sums: Sequence[Tensor], output: Tensor
) -> TrainingRecord:
    at = 0

    def array(shape: Sequence[int], dtype: Any = np.float32) -> Any:
        nonlocal at
        found = np.frombuffer(told, dtype, int(np.prod(shape)), at).reshape(shape)
        at += found.nbytes
        return found

    def arrays(tensors: Sequence[Tensor]) -> dict[str, Any]:
        return {tensor.name: array(tensor.static_shape, tensor.dtype.numpy) for tensor in tensors}

    found = TrainingRecord([arrays(learned)], [], [], [])
    for _ in drawn.batches:
        found.losses.append(float(array(())))
        found.sums.append({n.removesuffix(".gradient"): a for n, a in arrays(sums).items()})
        found.weights.append(arrays(learned))
        found.outputs.append({output.name: array(output.static_shape, output.dtype.numpy)})
    found.weights.append(arrays(learned))
    return found
