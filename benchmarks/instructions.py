"""What vectors save: instructions of one inference with a target's vector kernels, and with portable C alone, compiled
with the same flags, and where compilers make vectors of that by themselves also for the relative without vectors.
Emulators count exactly; benchmarks/instructions.json keeps it, docs/speed.md has it as a table.

python -m benchmarks.instructions             measure vectors; fail where they take 2 % more than is recorded
python -m benchmarks.instructions --update    measure both, and write both files anew
... --zoo FOLDER                              the models of that folder too (else their rows stay as they are)
... --target T                                that target only
... --only "transformer"                      rows with this in their names
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.small_networks import NETWORKS, half_of, path_of
from benchmarks.small_transformers import IN_FEW_BITS, TRANSFORMERS
from mccompile.base.errors import MccError
from mccompile.driver import Options
from mccompile.emit.summary import table
from mccompile.measure.cost import cost
from mccompile.targets.api import Prefer

TOP = Path(__file__).resolve().parent.parent
FIGURES, PAGE = TOP / "benchmarks" / "instructions.json", TOP / "docs" / "speed.md"
BEGIN, END = "<!-- begin of table: python -m benchmarks.instructions --update -->", "<!-- end of table -->"
GROWTH = 1.02
TARGETS = ("aarch64", "armv7a", "riscv64v", "riscv64v256", "wasm32", "wasm32-relaxed")
# what multiplies bytes in vectors
OF_BYTES = ("aarch64", "aarch64-i8mm", "armv7a", "riscv64v", "riscv64v256", "wasm32")
IN_HALVES = ("aarch64-fp16",)  # what computes in 16-bit floats
ZOO = ("ic_resnet8_f32", "kws_dscnn_f32", "mobilenetv2_035_128")
ZOO_HALF, ZOO_TO_HALVE = "ic_resnet8_fp16", ("kws_dscnn_f32", "mobilenetv2_035_128")
ZOO_BYTES = ("ic_resnet8_int8", "kws_dscnn_int8")
WITHOUT_VECTORS = {
    "riscv64v": "riscv64",
    "riscv64v256": "riscv64",
    "wasm32": "wasm32-scalar",
    "wasm32-relaxed": "wasm32-scalar",
}
HEAD = ("model", "target", "macs", "scalar C", "portable C", "vectors", "per mac", "of scalar C", "of portable C")


def models(folder: Path, zoo: Path | None) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Names, files, and the targets that they are measured on."""
    for name in NETWORKS:
        path = path_of(name, folder)
        yield name, path, TARGETS
        yield f"{name}_half", half_of(path, folder), IN_HALVES
    for name in IN_FEW_BITS:
        yield name, path_of(name, folder), TARGETS
    for name in TRANSFORMERS:
        yield name, path_of(name, folder), OF_BYTES if name.endswith("int8") else TARGETS
    if zoo is not None:
        for name in ZOO:
            yield name, zoo / name / "model.onnx", TARGETS
        yield ZOO_HALF, zoo / ZOO_HALF / "model.onnx", IN_HALVES
        for name in ZOO_TO_HALVE:
            yield f"{name}_half", half_of(zoo / name / "model.onnx", folder), IN_HALVES
        for name in ZOO_BYTES:
            yield name, zoo / name / "model.onnx", OF_BYTES


def portable(target: str, folder: Path) -> str:
    """A target that differs in having no kernels but those in portable C."""
    path = folder / f"{target}-portable.toml"
    path.write_text(f'inherits = "{target}"\nisas = ["c"]\n', encoding="utf-8")
    return str(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--target", choices=sorted({*TARGETS, *IN_HALVES, *OF_BYTES}), action="append")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    recorded: dict[str, dict[str, int]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    grown = []
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        for name, path, targets in models(Path(scratch), given.zoo):
            for target in [target for target in targets if target in (given.target or targets)]:
                key = f"{name} {target}"
                if given.only not in key:
                    continue
                try:
                    found = cost(path, Options(target=target, prefer=Prefer.TIME, name=name))
                    row = {"macs": found.macs, "vectors": found.run_instructions}
                    if given.update:
                        others = {"portable": portable(target, Path(scratch))}
                        if target in WITHOUT_VECTORS:
                            others["scalar"] = WITHOUT_VECTORS[target]
                        for word, other in others.items():
                            plain = cost(path, Options(target=other, prefer=Prefer.TIME, name=name))
                            row[word] = plain.run_instructions
                except MccError as error:
                    print(f"{key}: {error}", file=sys.stderr)
                    return error.exit_code
                before = recorded.get(key)
                if before is None and not given.update:
                    grown.append(f"{key} is not recorded")
                elif before is not None and row["vectors"] > before["vectors"] * GROWTH:
                    grown.append(f"{key}: took {before['vectors']} instructions, takes {row['vectors']}")
                recorded[key] = (before or {}) | row
    if given.update:
        FIGURES.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        before_table, after = page.partition(BEGIN)[0], page.partition(END)[2]
        text = "\n".join([BEGIN, "", "```text", *shown(recorded), "```", "", END])
        PAGE.write_text(f"{before_table}{text}{after}", encoding="utf-8")
    print("\n".join([*shown({key: row for key, row in recorded.items() if "portable" in row}), *grown]))
    return 1 if grown and not given.update else 0


def shown(recorded: dict[str, dict[str, int]]) -> list[str]:
    lines = []
    for key, row in sorted(recorded.items()):
        figures = [f"{row[name]:,}" if name in row else "" for name in ("macs", "scalar", "portable", "vectors")]
        ratios = [f"{row['vectors'] / row[name]:.3f}" if name in row else "" for name in ("macs", "scalar", "portable")]
        lines.append([*key.split(), *figures, *ratios])
    return table(HEAD, lines, frozenset({0, 1}))


if __name__ == "__main__":
    sys.exit(main())
