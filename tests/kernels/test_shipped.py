"""The measurements that come with mccompile: small, of kernels as they are, and chosen by where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile import __version__, cli
from mccompile.driver import Options, compile, pass_manager
from mccompile.kernels.measurements import SHIPPED, Database, file_of
from mccompile.project import read

KWS = Path(__file__).parents[2] / "examples" / "bare_metal" / "kws.onnx"
TARGETS = ("cortex-m0", "cortex-m4")


@pytest.mark.parametrize("target", TARGETS)
def test_it_is_in_step_with_kernels(target: str) -> None:
    """Not to the last row: a kernel may change where there is no emulator. After a release none is."""
    registry = pass_manager(Options(target=target, tuned=Path("default"))).context.registry
    assert registry.measured is not None
    count = len(registry.measured.times)
    assert count > 50 and registry.stale() < count, "run `make tuned`"


def test_it_is_small_and_counted() -> None:
    rows = Database(SHIPPED).rows()
    assert SHIPPED.stat().st_size < 1 << 20
    assert {row.key.target.split()[0] for row in rows} == set(TARGETS)
    assert {row.unit for row in rows} == {"instructions"} and {row.key.machine for row in rows} == {"emulated"}


def test_it_is_chosen_by(tmp_path: Path) -> None:
    options = Options(target="cortex-m4", tuned=Path("default"))
    costs = [c.cost for each in compile(KWS, options).explanations for c in each.choice.candidates]
    assert any(cost.measured for cost in costs)
    assert compile(KWS, options).files == compile(KWS, options).files
    assert file_of(Path("default")) == SHIPPED and file_of(tmp_path / "default") == tmp_path / "default"


def test_a_project_means_the_same_file(tmp_path: Path) -> None:
    project = tmp_path / "all.toml"
    project.write_text(
        '[[model]]\nfile = "kws.onnx"\ntuned = "default"\n[[model]]\nfile = "kws.onnx"\ntuned = "mine"\n'
    )
    jobs = read(project, {"tuned": ("--tuned", True)}).jobs
    assert [job.arguments[-1] for job in jobs] == ["default", str(tmp_path / "mine")]


def test_each_of_several_targets_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = "cortex-m4,generic"
    assert cli.run([str(KWS), "-o", str(tmp_path / "out"), "--target", targets, "--tuned", "default"]) == 0
    assert capsys.readouterr().out.count("\ntuned") == 2


def test_stale_rows_are_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As after a release, which changes the versions of all kernels."""
    command = [str(KWS), "-o", str(tmp_path / "out"), "--target", "cortex-m4", "--tuned", "default"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mccompile.driver.compiling.__version__", f"{__version__}.1")
        count = len(Database(SHIPPED).rows(Options(target="cortex-m4").resolved_target()))
        assert cli.run(command) == 0
        said = capsys.readouterr().out
        assert "0 of" in said and f"; {count} measurements of other versions of kernels are left out" in said
        plain = compile(KWS, Options(target="cortex-m4"))
        tuned = compile(KWS, Options(target="cortex-m4", tuned=Path("default")))
        assert tuned.files["kws_kernels.c"] == plain.files["kws_kernels.c"]
