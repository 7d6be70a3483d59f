"""A compiled model as a shared object of this machine, with functions whose names do not depend on it (`host.c`)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import Problem, WrongUse
from ..targets.api import Target
from .build import Compiler, compile_shared
from .host_model import host_model_header
from .loaded import built, loaded
from .model_report import Report, bad_folder, sources_of

TEXT_HOST = Path(__file__).with_name("text_host.c")  # of programs of language models
HOST_CDEF = Path(__file__).with_name("host.h").read_text(encoding="utf-8")


def refuse_elsewhere(target: Target) -> None:
    """Ends where programs for the target do not run on this machine."""
    if target.run:
        fix = "leave out target, or use mccompile.compile(...).check()"
        why = "the model is built and run here; a target with an emulator is run by check and bench"
        raise WrongUse(Problem(f"target {target.name} does not run on this machine", "target", why, fix))


def build_shared(
    folder: Path,
    report: Report,
    out: Path,
    compiler: Compiler,
    flags: Sequence[str],
    steps: int = 0,
    dump: bool = False,
) -> Path:
    """Compiles the C files of an output folder of mccompile; gives `out`. `steps`: so many tell when they end, and
    their times are wanted. `dump`: the model was compiled with --dump-values, and that is wanted."""
    # The weights are read from the blob, which need not be compiled.
    sources = [path for path in sources_of(folder, report.prefix) if path.name != f"{report.prefix}_weights.c"]
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        if report.module:
            image = built(folder, report, str(compiler), Path(scratch))
            sources = [Path(scratch, "loaded.c")]
            sources[0].write_text(loaded(report, image), encoding="utf-8")
        header = host_model_header(report)
        header += f"#define MCC_HOST_STEPS {steps}\n" if steps else ""
        header += "#define MCC_HOST_DUMP\n" if dump else ""
        Path(scratch, "mcc_host_model.h").write_text(header, encoding="utf-8")
        return compile_shared(
            compiler,
            [*sources, Path(__file__).with_name("host.c")],
            [Path(scratch), folder, folder / "runtime"],
            out,
            [*flags, "-pthread"] if report.threads > 1 else flags,
        )


def read_weights(folder: Path, report: Report) -> bytes:
    try:
        return (folder / f"{report.prefix}.mcb").read_bytes()
    except OSError as error:
        raise bad_folder(folder, f"{report.prefix}.mcb: {error.strerror}") from error
