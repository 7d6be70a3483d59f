"""Which accelerators there are, and what `--accelerator` does not go with."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.accelerators.registry import accelerator
from mccompile.base.errors import WrongUse
from mccompile.driver import Options, compile_jobs

TOY = str(Path(__file__).resolve().parents[2] / "examples" / "accelerator" / "toy")


def test_a_folder_is_an_accelerator(tmp_path: Path) -> None:
    assert accelerator(TOY).name == "toy"
    with pytest.raises(WrongUse, match=r"no backend\.py"):
        accelerator(str(tmp_path))
    (tmp_path / "backend.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(WrongUse, match="0 classes"):
        accelerator(str(tmp_path))


def test_what_nobody_knows_is_refused() -> None:
    with pytest.raises(WrongUse, match="there is no accelerator 'npu'"):
        accelerator("npu")


def test_what_it_does_not_go_with() -> None:
    with pytest.raises(WrongUse, match="--accelerator"):
        Options(accelerator=TOY, module=True)
    jobs = [(Path("m.onnx"), Options(accelerator=TOY, target="native,cortex-m4"))]
    with pytest.raises(WrongUse, match="several targets"):
        compile_jobs(jobs, "m")
