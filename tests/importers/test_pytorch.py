"""Modules and exported programs of PyTorch: from object to C to equal numbers.

`make importers` runs this where the extra `torch` is installed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mccompile
from mccompile import cli
from mccompile.base.errors import MccError, UnsupportedModel, WrongUse

torch = pytest.importorskip("torch", reason="the extra torch is not installed; `make importers` runs this")
pytest.importorskip("onnxscript")


class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout()
        )
        self.head = torch.nn.Linear(64, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image).flatten(1))


class Branches(torch.nn.Module):  # type: ignore[name-defined, misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


@pytest.fixture(scope="module")
def net() -> Net:
    torch.manual_seed(0)
    found = Net()
    for _ in range(3):
        found(torch.randn(8, 1, 4, 4))  # statistics to normalize with
    return found.eval()


def images(count: int = 1) -> torch.Tensor:
    return torch.randn(count, 1, 4, 4, generator=torch.Generator().manual_seed(count))


def agree(got: np.ndarray, wanted: torch.Tensor) -> None:
    expected = wanted.detach().numpy()
    assert np.abs(got - expected).max() <= 3e-5 * np.abs(expected).max()


def test_a_module_becomes_c_with_equal_results(net: Net) -> None:
    compiled = mccompile.load(net, args=(images(),))
    assert compiled.input_names == ("image",)
    agree(compiled(images().numpy())[0], net(images()))


def test_a_module_in_training_is_compiled_as_it_is_used_and_left_as_it_was(net: Net) -> None:
    wanted = net(images())
    net.train()
    net.head.eval()
    try:
        agree(mccompile.load(net, args=images())(images().numpy())[0], wanted)
        assert net.training and net.features[1].training and not net.head.training
    finally:
        net.eval()


def test_sizes_that_are_named_stay_open(net: Net) -> None:
    compiled = mccompile.load(net, args=(images(2),), dynamic={"image": {0: "batch"}}, dims={"batch": (1, 8)})
    for count in (1, 5):
        agree(compiled(images(count).numpy())[0], net(images(count)))


def test_a_saved_program_is_compiled_where_it_is_trusted(
    net: Net, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(net, (images(),)), path)
    assert cli.run(["check", str(path)]) == 2
    assert "torch.export.load unpickles parts of it" in capsys.readouterr().err
    assert cli.run(["check", str(path), "--trust"]) == 0
    agree(mccompile.load(path, trust=True)(images().numpy())[0], net(images()))
    agree(mccompile.load(torch.export.export(net, (images(),)))(images().numpy())[0], net(images()))


def test_a_damaged_program_is_refused(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(net, (images(),)), path)
    path.write_bytes(path.read_bytes().replace(b"aten.conv2d.default", b"aten.conv2q.default"))
    with pytest.raises(MccError, match="torch"):
        mccompile.compile(path, trust=True)


@pytest.mark.parametrize(
    ("module", "how", "said"),
    [
        (Net(), {}, "fix    mccompile.compile(module, args=(torch.zeros("),
        (Net(), {"args": images(), "dynamic": {"imge": {0: "n"}}}, "fix    did you mean image?"),
        (Net(), {"args": images(), "dynamic": {"image": {3: "n"}}}, "fix    leave the size that it names out of"),
        (Net(), {"args": torch.zeros(3, 3)}, "fix    give args as forward takes them"),
        (Branches(), {"args": torch.zeros(3)}, "fix    do not branch on values in forward"),
    ],
    ids=["no args", "unknown name", "fixed size", "other shape", "branch"],
)
def test_what_the_exporter_refuses_is_passed_on_with_what_to_change(module: Net, how: dict, said: str) -> None:
    with pytest.raises((WrongUse, UnsupportedModel)) as caught:
        mccompile.compile(module, **how)
    assert said in str(caught.value) and "Traceback" not in str(caught.value)


def test_several_inputs_keep_their_names(net: Net) -> None:
    class Sum(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return left + right, left - right

    compiled = mccompile.load(Sum(), args={"left": torch.zeros(3), "right": torch.zeros(3)})
    assert compiled.input_names == ("left", "right")
    found = compiled(left=np.ones(3, np.float32), right=np.full(3, 2, np.float32))
    assert [array.tolist() for array in found] == [[3.0] * 3, [-1.0] * 3]


QUANTIZED = ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "IntxWeightOnlyConfig"]


@pytest.mark.parametrize("config", QUANTIZED)
def test_modules_that_torchao_has_quantized(config: str) -> None:
    quantization = pytest.importorskip("torchao.quantization")
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)).eval()
    x = torch.randn(20, 32)
    quantization.quantize_(net, getattr(quantization, config)())
    agree(mccompile.load(net, args=x)(x.numpy())[0], net(x))


def test_modules_that_pt2e_has_quantized_are_integers(net: Net) -> None:
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")
    quantizer = pytest.importorskip("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    how = quantizer.X86InductorQuantizer().set_global(quantizer.get_default_x86_inductor_quantization_config())
    prepared = pt2e.prepare_pt2e(torch.export.export(net, (images(),)).module(), how)
    for seed in range(1, 5):
        prepared(images(1) * seed)
    module = pt2e.convert_pt2e(prepared)
    compiled = mccompile.load(module, args=images())
    wanted = module(images()).detach().numpy()
    assert np.abs(compiled(images().numpy())[0] - wanted).max() <= 0.02 * np.abs(wanted).max()
    steps = [step["name"] for step in mccompile.compile(module, args=images()).report["steps"]]
    assert any("conv2d" in name and "quantize_per_tensor" in name for name in steps), steps
