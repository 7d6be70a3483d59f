"""Networks that `benchmarks.training` learns: PyTorch modules with weights at random; `torchvision` has the large ones.

Invariant: nothing here is random while it learns, so both sides compute the same losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

Made = tuple[Any, Any, int]  # a module, an input, and how many classes it tells apart


def vision(name: str, classes: int, *shape: int) -> Callable[[], Made]:
    def made() -> Made:
        import torch
        import torchvision

        return getattr(torchvision.models, name)(num_classes=classes), torch.randn(shape), classes

    return made


def transformer() -> Made:
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
    body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    return nn.Sequential(body, nn.Flatten(), nn.Linear(64 * 128, 10)), torch.randn(4, 64, 128), 10


def gru() -> Made:
    import torch
    from torch import nn

    class Listener(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.last = nn.GRU(40, 64, batch_first=True), nn.Linear(64, 12)

        def forward(self, x: Any) -> Any:
            return self.last(self.gru(x)[0][:, -1])

    return Listener(), torch.randn(8, 50, 40), 12


def _block(c_in: int, c_out: int, window: Any, stride: int = 1, group: int = 1, pad: Any = 1) -> list[Any]:
    from torch import nn

    conv = nn.Conv2d(c_in, c_out, window, stride, pad, groups=group, bias=False)
    return [conv, nn.BatchNorm2d(c_out), nn.ReLU()]


def keywords() -> Made:
    """MLPerf Tiny's separable network for keywords."""
    import torch
    from torch import nn

    layers = _block(1, 64, (10, 4), 2, pad=(5, 1))
    for _ in range(4):
        layers += [*_block(64, 64, 3, group=64), *_block(64, 64, 1, pad=0)]
    return (
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12)),
        torch.randn(8, 1, 49, 10),
        12,
    )


def wake_vision() -> Made:
    """MLPerf Tiny's MobileNetV1 at a quarter of the channels, 96x96."""
    import torch
    from torch import nn

    layers, c_in = _block(3, 8, 3, 2), 8
    for channels, stride in (
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        *[(128, 1)] * 5,
        (256, 2),
        (256, 1),
    ):
        layers += [*_block(c_in, c_in, 3, stride, c_in), *_block(c_in, channels, 1, pad=0)]
        c_in = channels
    return (
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 2)),
        torch.randn(4, 3, 96, 96),
        2,
    )


def anomalies() -> Made:
    """The layers of MLPerf Tiny's autoencoder."""
    import torch
    from torch import nn

    layers, sizes = list[Any](), (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 640)), torch.randn(16, 640), 640


def pictures() -> Made:
    """MLPerf Tiny's ResNet-8."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, c_in: int, c_out: int, stride: int) -> None:
            super().__init__()
            last = [nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False), nn.BatchNorm2d(c_out)]
            self.body = nn.Sequential(*_block(c_in, c_out, 3, stride), *last)
            self.beside = nn.Conv2d(c_in, c_out, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.beside(x))

    body = [*_block(3, 16, 3), Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), torch.randn(8, 3, 32, 32), 10


NETWORKS: Mapping[str, Callable[[], Made]] = {
    "resnet18_32": vision("resnet18", 10, 8, 3, 32, 32),
    "resnet18_224": vision("resnet18", 1000, 1, 3, 224, 224),
    "mobilenet_v2": vision("mobilenet_v2", 1000, 2, 3, 224, 224),
    **{each.__name__: each for each in (transformer, gru, keywords, pictures, wake_vision, anomalies)},
}
