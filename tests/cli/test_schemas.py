"""What commands tell programs is what the schemas say, and names its version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccompile import cli
from mccompile.cli.told import schemas
from mccompile.toolchain.tools import missing
from tests import small_models
from tests.small_models import save

COMMANDS = {
    "bench conv.onnx --target cortex-m4": "bench",
    "bench conv.onnx --target cortex-m4,cortex-m0": "bench",
    "bench conv.onnx": "bench",
    "boards stm32f4": "boards",
    "check conv.onnx --runs 1": "check",
    "check conv.onnx --runs 1 --target generic,cortex-m4": "check",
    "conv.onnx -o out": "compile",
    "conv.onnx -o other --target cortex-m4,cortex-m0 --html": "compile",
    "diff out other": "diff",
    "diff out out": "diff",
    "doctor": "doctor",
    "ops": "ops",
    "ops conv": "ops",
    "ops gelu": "ops",
    "targets": "targets",
}
TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    save(small_models.conv(), folder).rename(folder / "conv.onnx")
    for name, options in (("out", ()), ("other", ("-O0",))):
        assert cli.run([str(folder / "conv.onnx"), "-o", str(folder / name), *options]) == 0
    return folder


def told(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.run([*command.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_output_is_what_the_schema_says(
    command: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "cortex" in command and COMMANDS[command] in ("bench", "check") and missing(TOOLS):
        pytest.skip("needs a cross-compiler and its emulator")
    monkeypatch.chdir(files)
    found, schema = told(command, capsys), schemas()[COMMANDS[command]]
    jsonschema.validate(found, schema)
    assert found["schema"] == schema["properties"]["schema"]["const"] == f"mccompile/{COMMANDS[command]}/1"
    known = schema["properties"].keys()
    assert COMMANDS[command] in ("check", "bench") or found.keys() <= known, found.keys() - known


@pytest.mark.parametrize("command", sorted(schemas()))
def test_schemas_are_schemas_and_say_no_to_what_lacks_keys(command: str) -> None:
    schema = schemas()[command]
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": schema["properties"]["schema"]["const"]}, schema)


def test_all_commands_with_a_schema_are_run() -> None:
    assert set(COMMANDS.values()) == set(schemas())
