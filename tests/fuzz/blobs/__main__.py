"""Fuzzes the init of compiled models with blobs that are broken, and with blobs of right checksum and wrong content:
`make fuzz-init SECONDS=3600`. Status 1 says that something was found."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from .models import all_programs
from .programs import build, fuzz, runs_here


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.blobs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="for all models together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="models, with commas between")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz-init"), help="where programs and findings go")
    arguments = parser.parse_args()
    programs = all_programs()
    names = [name for name in arguments.only.split(",") if name] or list(programs)
    unknown = [name for name in names if name not in programs]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}, but {', '.join(programs)}")
    if shutil.which("clang") is None:
        parser.error("libFuzzer comes with clang, which is not there (Debian: apt-get install clang)")
    names = [name for name in names if runs_here(programs[name][1])]
    executions, findings = 0, 0
    for name in names:
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        program = build(name, folder)
        found = fuzz(program, [f"-max_total_time={max(1, round(arguments.seconds / len(names)))}"], arguments.seed)
        print(f"{name}: {found}", flush=True)
        executions += found.executions
        findings += bool(found.finding)
    print(f"seed {arguments.seed}: {len(names)} models, {executions} executions, {findings} findings")
    if findings:
        print(f"the inputs lie beside the programs: {arguments.out}/<model>/<model> {arguments.out}/<model>/crash-...")
    return 1 if findings else 0


raise SystemExit(main())
