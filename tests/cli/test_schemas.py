"""What commands tell programs is what the schemas say, and names its version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from mccompile import cli
from mccompile.cli.told import schemas
from mccompile.toolchain.run import Model
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.small_models import save
from tests.thorough import some

COMMANDS = {
    "analyze conv.onnx": "analyze",
    "analyze conv.onnx --measure --target generic,cortex-m4": "analyze",
    "analyze conv.onnx --frontier": "analyze",
    "bench conv.onnx --target cortex-m4": "bench",
    "bench conv.onnx --target cortex-m4,cortex-m0": "bench",
    "bench conv.onnx": "bench",
    "boards stm32f4": "boards",
    "check conv.onnx --runs 1": "check",
    "check conv.onnx --runs 1 --loss mse:y": "check",
    "check conv.onnx --runs 1 --target generic,cortex-m4": "check",
    "compare dumping dump.bin --model conv.onnx": "compare",
    "conv.onnx -o out": "compile",
    "conv.onnx -o other --target cortex-m4,cortex-m0 --html": "compile",
    "deploy conv.onnx -o board --board nucleo_f446re": "deploy",
    "diff out other": "diff",
    "diff out out": "diff",
    "doctor": "doctor",
    "ops": "ops",
    "quantize conv.onnx -o int8.onnx --data s.npz --auto 1": "quantize",
    "quantize conv.onnx -o int8.onnx --weights-only 8": "quantize",
    "tune conv.onnx --time 1s --database tuned.sqlite": "tune",
    "ops conv": "ops",
    "ops gelu": "ops",
    "targets": "targets",
}
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    save(small_models.conv(), folder).rename(folder / "conv.onnx")
    for name, options in (("out", ()), ("other", ("-O0",)), ("dumping", ("--dump-values",))):
        assert cli.run([str(folder / "conv.onnx"), "-o", str(folder / name), *options]) == 0
    inputs = small_models.random_inputs(small_models.conv())
    (folder / "dump.bin").write_bytes(Model.build(folder / "dumping", dump=True).dump(inputs))
    np.savez(folder / "s.npz", x=np.random.default_rng(0).random((9, 2, 6, 6), np.float32))
    return folder


def told(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.run([*command.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@some(12, "command", COMMANDS)
def test_output_is_what_the_schema_says(
    command: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "cortex" in command and COMMANDS[command] in ("analyze", "bench", "check") and missing(TOOLS):
        pytest.skip("needs a cross-compiler and its emulator")
    monkeypatch.chdir(files)
    found, schema = told(command, capsys), schemas()[COMMANDS[command]]
    jsonschema.validate(found, schema)
    assert found["schema"] == schema["properties"]["schema"]["const"] == f"mccompile/{COMMANDS[command]}/1"
    known = schema["properties"].keys()
    assert COMMANDS[command] in ("analyze", "bench", "check") or found.keys() <= known, found.keys() - known


@pytest.mark.parametrize("command", sorted(schemas()))
def test_schemas_are_schemas_and_say_no_to_what_lacks_keys(command: str) -> None:
    schema = schemas()[command]
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": schema["properties"]["schema"]["const"]}, schema)


def test_all_commands_with_json_have_a_schema_and_are_run() -> None:
    found = {name for name, each in cli.every_command.commands.items() if any("--json" in p.opts for p in each.params)}
    assert set(COMMANDS.values()) == set(schemas()) == found
