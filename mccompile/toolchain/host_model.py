"""What C code of the toolchain is told of a model: macros by which `host.c` calls it."""

from __future__ import annotations

from .model_report import Report

_STEP_BY_STEP = """
#define MCC_HOST_RUN mcc_host_step_by_step
static mcc_status mcc_host_step_by_step(NAME_model *m)
{
    mcc_status status = NAME_begin(m);
    if (status != MCC_OK) return status;
    do status = NAME_run_steps(m, 1u);
    while (status == MCC_MORE);
    return status;
}
"""


def host_model_header(report: Report) -> str:
    inputs = " ".join(f"MCC_HOST_EACH({tensor.symbol})" for tensor in report.inputs if not tensor.room)
    outputs = " ".join(f"MCC_HOST_EACH({tensor.symbol})" for tensor in report.outputs if not tensor.room)
    ways = [("input", t) for t in report.inputs if t.room] + [("output", t) for t in report.outputs if t.room]
    placed = [(n, f"{way}_{t.symbol}", t) for n, (way, t) in enumerate(ways)]
    places = (f"MCC_HOST_EACH({n}, {name}, {t.dtype.storage_c})" for n, name, t in placed if t.rows is None)
    rows = [f"MCC_HOST_EACH({n}, {name}, {t.rows.bytes}u, {t.rows.count})" for n, name, t in placed if t.rows]
    shaped = ((n, t.symbol) for n, t in enumerate(report.outputs) if not t.is_static)
    shapes = " ".join(f"MCC_HOST_EACH({n}, {symbol})" for n, symbol in shaped)
    sizes = ", ".join(f"(mcc_index)(n)[{n}]" for n in range(len(report.given)))
    resize = f"{report.prefix}_resize(m, {sizes})" if sizes else "MCC_OK"
    name = report.prefix
    arenas = ", ".join(f"(a)[{n}], (n)[{n}]" for n in range(len(report.arenas)))
    state = f"((to) ? {name}_save_state(m, to) : {name}_load_state(m, from))" if report.state_bytes else "MCC_OK"
    return (
        f'#include "{report.prefix}.h"\n'
        f"#define MCC_HOST_PREFIX {report.prefix}\n"
        f"{_STEP_BY_STEP.replace('NAME', name) if report.sliced else f'#define MCC_HOST_RUN {name}_run'}\n"
        f"#define MCC_HOST_INPUTS(MCC_HOST_EACH) {inputs}\n"
        f"#define MCC_HOST_OUTPUTS(MCC_HOST_EACH) {outputs}\n"
        f"#define MCC_HOST_SHAPES(MCC_HOST_EACH) {shapes}\n"
        f"#define MCC_HOST_PLACES(MCC_HOST_EACH) {' '.join(places)}\n"
        f"#define MCC_HOST_INIT(m, a, n, w, s) {name}_init(m, {arenas}, w, s)\n"
        f"#define MCC_HOST_RESIZE(m, n) {resize}\n"
        f"#define MCC_HOST_STATE(m, to, from) {state}\n"
        f"#define MCC_HOST_ADVANCE(m) {f'{name}_advance(m)' if report.advances else 'MCC_OK'}\n"
        + (f"#define MCC_HOST_ROWS(MCC_HOST_EACH) {' '.join(rows)}\n" if rows else "")
        + learning_macros(report)
        + (f"#define MCC_HOST_WORKERS {report.threads}\n" if report.threads > 1 else "")
    )


def learning_macros(report: Report) -> str:
    """Where weights move in the call that learns, there is no step."""
    arguments = {phase.name: ", rate" * bool(phase.arguments) for phase in report.phases}
    if not report.learns:
        return ""
    step = f"{report.prefix}_step(m, rate)" if "step" in arguments else "MCC_OK"
    learn = f"{report.prefix}_learn(m{arguments['learn']})"
    return f"#define MCC_HOST_LEARN(m, rate) {learn}\n#define MCC_HOST_STEP(m, rate) {step}\n"
