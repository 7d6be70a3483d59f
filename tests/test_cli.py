"""The command line as a user meets it: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from mccompile import cli
from mccompile.base.errors import Exit
from tests import small_models
from tests.damaged import damaged
from tests.small_models import random_inputs, reference, save


@pytest.fixture
def conv(tmp_path: Path) -> Path:
    return save(small_models.conv(), tmp_path)


def fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: str | Path) -> str:
    """Runs a command that must fail with `code`; gives what it said."""
    assert cli.run([str(argument) for argument in arguments]) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def succeeds(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


# -- compile


def test_compiles_without_naming_the_command(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = succeeds(capsys, conv, "-o", tmp_path / "out")
    assert {"conv.c", "conv.h", "conv.mcb", "report.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert f"arena    {report['arena_bytes']} bytes" in said
    assert f"macs     {4 * 2 * 9 * 36 + 4 * 4 * 9 * 36}" in said


def test_a_model_may_come_from_standard_input(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeeds(capsys, conv, "-o", tmp_path / "file", "--name", "piped")
    command = [sys.executable, "-m", "mccompile", "-", "-o", str(tmp_path / "pipe"), "--name", "piped"]
    subprocess.run(command, input=conv.read_bytes(), check=True, capture_output=True)
    for path in (tmp_path / "file").glob("*.*"):
        assert path.read_bytes() == (tmp_path / "pipe" / path.name).read_bytes()
    assert "save the model as a file" in fails(capsys, 2, "check", "-")


def test_a_budget_is_kept_or_names_the_tensors_at_the_peak(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    succeeds(capsys, conv, "-o", tmp_path / "out", "--budget", "ram=64K", "--budget", "flash=1M")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    said = fails(capsys, 1, conv, "-o", tmp_path / "none", "--budget", "ram=100")
    assert "over the budget" in said and all(name in said for name in report["at_peak"])
    assert not (tmp_path / "none").exists()
    assert "ram=SIZE" in fails(capsys, 2, conv, "-o", tmp_path / "none", "--budget", "ram=much")


def test_what_is_over_the_budget_is_told_which_options_would_fit(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    succeeds(capsys, conv, "-o", tmp_path / "kept", "--keep-inputs", "--rows", "off")
    succeeds(capsys, conv, "-o", tmp_path / "free", "--rows", "off")
    kept, free = (json.loads((tmp_path / n / "report.json").read_text())["arena_bytes"] for n in ("kept", "free"))
    assert free < kept
    said = fails(capsys, 1, conv, "-o", tmp_path / "no", "--keep-inputs", "--rows", "off", "--budget", f"ram={free}")
    assert f"with inputs that may be overwritten (no --keep-inputs) it takes {free} bytes" in said
    said = fails(capsys, 1, conv, "-o", tmp_path / "no", "--keep-inputs", "--rows", "off", "--budget", "ram=8")
    assert re.search(r"the least that options reach is (\d+) bytes, with .* --budget ram=\1;", said)


def test_options_may_come_first(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeeds(capsys, "-o", tmp_path / "out", "--name", "kws", conv)
    assert (tmp_path / "out" / "kws.h").is_file()


def test_a_report_has_what_it_should(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    succeeds(capsys, conv, "-o", tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["arena_bound_bytes"] <= report["arena_bytes"] <= report["arena_naive_bytes"]
    assert report["weights_bytes"] == (tmp_path / "out" / "conv.mcb").stat().st_size
    assert report["steps"][0].keys() >= {"name", "op", "kernel", "macs", "arena_range"}
    sizes = {f"{what}_{when}" for what in ("nodes", "moves", "bytes") for when in ("before", "after")}
    assert report["passes"][0].keys() == {"name"} | sizes


def test_a_free_dimension_is_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = small_models.passthrough()
    for entry in (*made.graph.input, *made.graph.output):
        entry.type.tensor_type.shape.dim[0].dim_param = "batch"
    del made.graph.output[-1]  # the constant one has no batch
    path = save(made, tmp_path)
    said = fails(capsys, 3, path, "-o", tmp_path / "out")
    assert "--dim batch=1" in said
    succeeds(capsys, path, "-o", tmp_path / "by-dim", "--dim", "batch=4")
    succeeds(capsys, path, "-o", tmp_path / "by-shape", "--shape", "x=4,3")
    shapes = [
        json.loads((tmp_path / f / "report.json").read_text())["inputs"][0]["shape"] for f in ("by-dim", "by-shape")
    ]
    assert shapes == [[4, 3], [4, 3]]


def test_print_after_and_dump(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.run([str(conv), "-o", str(tmp_path / "out"), "--print-after", "fuse", "--dump", str(tmp_path / "ir")]) == 0
    )
    assert "# after fuse\nprogram " in capsys.readouterr().err
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert names[0] == "00-load.graph.dot" and "constants.zip" in names and any("fuse.program.txt" in n for n in names)


def test_kept_inputs_are_promised_in_the_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(small_models.passthrough(), tmp_path)
    succeeds(capsys, path, "-o", tmp_path / "out", "--keep-inputs")
    assert "#define PASSTHROUGH_INPUT_X_PRESERVED 1" in (tmp_path / "out" / "passthrough.h").read_text()


def test_a_folder_is_written_again_and_keeps_what_is_not_ours(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    succeeds(capsys, conv, "-o", out, "--name", "first")
    (out / "notes.txt").write_text("mine")
    succeeds(capsys, conv, "-o", out, "--name", "second")
    names = {path.name for path in out.iterdir()}
    assert {"second.c", "notes.txt", "runtime"} <= names
    assert not [name for name in names if name.startswith("first")]


# -- bad use and bad files


@pytest.mark.parametrize("command", [["quantize", "--weights-only", "8"], ["opt", "--passes", "lower"]])
@pytest.mark.parametrize("linked", [False, True])
def test_a_model_is_never_written_over(
    command: list[str], linked: bool, conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, destination = conv.read_bytes(), conv
    if linked:
        destination = tmp_path / "link.onnx"
        destination.symlink_to(conv)
    said = fails(capsys, 2, command[0], conv, *command[1:], "-o", destination)
    assert "would be lost" in said and conv.read_bytes() == before


def test_a_folder_with_other_files_is_left_alone(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(conv.parent.iterdir())
    said = fails(capsys, 2, conv, "-o", conv.parent)
    assert "mccompile did not make" in said and "fix" in said
    assert sorted(conv.parent.iterdir()) == before


def test_a_folder_that_cannot_be_written(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert "cannot write the output folder" in fails(capsys, 2, conv, "-o", blocked / "out")
    assert "cannot write the output folder" in fails(capsys, 2, conv, "-o", blocked)
    assert blocked.read_text() == "not a folder"


def test_writing_that_fails_half_way_leaves_nothing(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if path.name == "main.c" and mode == "wb":
            raise OSError(28, "No space left on device")
        return opened(path, mode, *rest, **named)

    succeeds(capsys, conv, "-o", tmp_path / "old")
    old = {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()}
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(Path, "open", full)
    assert "No space left" in fails(capsys, 2, conv, "-o", tmp_path / "new")
    assert "No space left" in fails(capsys, 2, conv, "-o", tmp_path / "old", "-O0")
    assert sorted(tmp_path.iterdir()) == before
    assert {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()} == old


def test_a_missing_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing.onnx" in fails(capsys, 4, tmp_path / "nothing.onnx", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("contents", [b"", b"hello, world", b"\x08\x07\x12\x04abcd", bytes(range(256))])
def test_a_file_that_is_no_model(contents: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(contents)
    said = fails(capsys, 4, path, "-o", tmp_path / "out")
    assert "odd.onnx" in said and "fix" in said


def test_a_truncated_model(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = conv.read_bytes()
    for size in range(1, len(whole), 97):
        conv.write_bytes(whole[:size])
        fails(capsys, 4, conv, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unsupported_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = small_models.passthrough()
    made.graph.node[0].op_type = "NoSuchOperator"
    said = fails(capsys, 3, save(made, tmp_path), "-o", tmp_path / "out")
    assert "NoSuchOperator" in said and "same/Identity" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--dim", "batch"],
        ["--dim", "batch=many"],
        ["--bound", "x=many"],
        ["--bound", "nothing=5"],
        ["--state", "y"],
        ["--state", "y=nothing"],
        ["--shape", "x"],
        ["--target", "no-such-machine"],
        ["--prefer", "beauty"],
        ["--planner", "none"],
        ["--without", "no_such_pass"],
        ["--without", "select_kernels"],
        ["--print-after", "no_such_pass"],
        ["--observe", "no such tensor"],
        ["--kernels", "no/such/folder"],
        ["--no-such-option"],
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: list[str], conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, 2, conv, "-o", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_bug_says_that_it_is_one(
    conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("mccompile.driver.jobs.compile", broken)
    monkeypatch.delenv(cli.DEBUG, raising=False)
    assert "bug in mccompile" in fails(capsys, Exit.BUG, conv, "-o", tmp_path / "out")
    monkeypatch.setenv(cli.DEBUG, "1")
    assert cli.run([str(conv), "-o", str(tmp_path / "out")]) == Exit.BUG
    assert "Traceback" in capsys.readouterr().err


# -- check


def test_check_as_json(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(succeeds(capsys, "check", conv, "--json"))
    assert found["ok"] is True
    (output,) = found["outputs"]
    assert output["name"] == "y" and output["mismatches"] == 0 and 0 <= output["max_rel"] < 1e-5


def test_check_takes_stored_data(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = small_models.conv()
    inputs = random_inputs(made)
    outputs = reference(made, inputs)
    folder = tmp_path / "data" / "test_data_set_0"
    folder.mkdir(parents=True)
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(inputs["x"]).SerializeToString())
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(outputs["y"]).SerializeToString())
    assert "test_data_set_0" in succeeds(capsys, "check", conv, "--data", tmp_path / "data")
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(outputs["y"] + np.float32(0.01)).SerializeToString())
    assert "wrong results" in fails(capsys, 1, "check", conv, "--data", tmp_path / "data")


def test_check_names_the_first_tensor_that_differs(
    conv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mccompile.emit import kernels

    monkeypatch.setattr(kernels, "printed", damaged(kernels.printed, "0.0f", "0.25f"))  # the ReLUs
    assert cli.run(["check", str(conv), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["first_difference"]["tensor"] in ("c1", "r1")
    assert found["outputs"][0]["mismatches"] > 0


def test_check_without_a_compiler(
    conv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert "no C compiler found" in fails(capsys, 2, "check", conv)


def test_check_without_its_data(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no test data" in fails(capsys, 4, "check", conv, "--data", tmp_path / "nowhere")


def test_check_of_several_targets(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = succeeds(capsys, "check", conv, "--target", "generic,native")
    assert said.count("conv.onnx for ") == 2 and said.count("ok ") == 6
    found = json.loads(succeeds(capsys, "check", conv, "--target", "generic,native", "--json"))
    assert found["ok"] and [each["target"] for each in found["checks"]] == ["generic", "native"]


def test_check_of_a_project(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "all.toml"
    project.write_text(f'[[model]]\nfile = "{conv}"\nname = "one"\n[[model]]\nfile = "{conv}"\nname = "two"\n')
    found = json.loads(succeeds(capsys, "check", project, "--json"))
    assert [each["model"] for each in found["checks"]] == ["one", "two"]
    assert "does not go with other models" in fails(capsys, 2, "check", project, "--rows", "off")


def test_check_goes_on_after_a_target_that_is_wrong(
    conv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mccompile.cli import checks
    from mccompile.emit import kernels

    monkeypatch.setattr(checks, "opener", lambda executor: lambda: ThreadPoolExecutor(1))  # sees what is patched
    monkeypatch.setattr(kernels, "printed", damaged(kernels.printed, "0.0f", "0.25f"))
    assert cli.run(["check", str(conv), "--target", "generic,generic", "--runs", "1"]) == 1
    said = capsys.readouterr()
    assert said.out.count("WRONG  random") == 2 and said.err.count("gives wrong results") == 2


# -- the other commands


def test_opt_goes_on_from_its_own_text(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = "fold_constants,lower,fuse,select_kernels,order_calls,bufferize,pack_constants"
    at_once = succeeds(capsys, "opt", conv, "--passes", every)
    path = conv
    for number, name in enumerate(every.split(",")):
        succeeds(capsys, "opt", path, "--passes", name, "-o", tmp_path / f"{number}.txt")
        path = tmp_path / f"{number}.txt"
    assert path.read_text() == at_once


def test_opt_refuses_a_pass_of_the_other_ir(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot run pass 'fuse' on a graph" in fails(capsys, 2, "opt", conv, "--passes", "fuse")
    assert "cannot run pass 'fold_constants' on a program" in fails(
        capsys, 2, "opt", conv, "--passes", "lower,fold_constants"
    )


def test_opt_reports_bad_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.txt"
    for text in ('graph "g" {', 'program "p" {\n  call Nothing() () -> ()\n}', 'graph "g" {\n  output %x\n}'):
        path.write_text(text)
        assert "bad.txt" in fails(capsys, 4, "opt", path)


def test_kernels_are_explained(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = succeeds(capsys, "analyze", conv, "--explain", "--target", "x86-64-v3", "--winograd", "off")
    assert re.search(r"^  -> f32_nhwc_tile__vec +\d+ ", said, re.MULTILINE)
    assert re.search(r"^     any_strided_direct__c +\d+ ", said, re.MULTILINE)
    assert "f32_nhwc_winograd__vec: no, Winograd's method is switched off" in said


def test_analyze_shows_steps_and_memory(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = succeeds(capsys, "analyze", conv)
    assert "c1/Conv" in said and "the lower bound" in said and "|####" in said


def test_ops_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    listed = succeeds(capsys, "ops")
    assert "\nConv " in listed and "mccompile::" not in listed  # the operators of passes are not the file's
    assert "auto_pad" in succeeds(capsys, "ops", "conv")
    assert "is not supported" in fails(capsys, 2, "ops", "NoSuchOperator")


def test_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cortex-m4" in succeeds(capsys, "targets")


def test_help_needs_no_compiler_imports() -> None:
    code = "import sys; from mccompile.cli import run; run(['-h']); print({'onnx', 'numpy'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("set()\n")


def test_compiling_needs_no_reference_nor_onnxruntime(conv: Path, tmp_path: Path) -> None:
    slow = "('onnxruntime', 'onnx.reference', 'cffi')"
    run = f"run([{str(conv)!r}, '-o', {str(tmp_path / 'out')!r}])"
    code = f"import sys; from mccompile.cli import run; {run}; print([m for m in {slow} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")


# -- quantize


def test_quantizes_and_compiles_what_came_out(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    np.savez(tmp_path / "s.npz", **{n: np.repeat(a, 4, 0) for n, a in random_inputs(small_models.conv()).items()})
    result = tmp_path / "int8.onnx"
    said = succeeds(capsys, "quantize", conv, "--data", tmp_path / "s.npz", "-o", result)
    assert "dB signal to noise" in said and "differ from the float simulation" in said
    succeeds(capsys, result, "-o", tmp_path / "apart")
    succeeds(capsys, conv, "--quantize", tmp_path / "s.npz", "-o", tmp_path / "at_once")
    blobs = [next((tmp_path / folder).glob("*.mcb")).stat().st_size for folder in ("apart", "at_once")]
    assert blobs[0] == blobs[1]
    said = fails(capsys, 2, "check", conv, "--quantize", tmp_path / "s.npz")
    assert "--quantize does not go with check" in said and "mccompile quantize" in said


def test_quantizing_says_what_it_needs(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(capsys, 2, "quantize", conv, "-o", tmp_path / "int8.onnx")
    assert "no calibration data" in said and "--weights-only 8" in said
    wrong = ("--dynamic", "--weights-only", "8")
    assert "exclude each other" in fails(capsys, 2, "quantize", conv, "-o", tmp_path / "int8.onnx", *wrong)


def test_analyze_writes_a_page_and_json(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "new" / "report.html"
    found = json.loads(succeeds(capsys, "analyze", conv, "--html", page, "--json"))
    assert found["steps"][0]["after"] == [] and f"<title>{found['model']} for generic" in page.read_text()
    assert "cannot write" in fails(capsys, 2, "analyze", conv, "--html", page / "report.html")


def test_analyze_measures(conv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(succeeds(capsys, "analyze", conv, "--json", "--measure", "--target", "native"))
    assert found["measured"]["median_us"] > 0


def test_diff_compares_two_folders(conv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("before", "after"):
        succeeds(capsys, conv, "-o", tmp_path / name, *(["-O0"] if name == "after" else []))
    folders = tmp_path / "before", tmp_path / "after"
    assert "RAM: arena" in succeeds(capsys, "diff", *folders)
    assert succeeds(capsys, "diff", *folders, "--markdown").count("|---|") >= 1
    assert json.loads(succeeds(capsys, "diff", *folders, "--json"))["figures"]
