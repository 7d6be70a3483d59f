"""Small networks of many kinds, whose losses `benchmarks.training --losses` compares: PyTorch modules at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.training_networks import Made, vision

CLASSES = 10


def _timm(name: str, *shape: int) -> Callable[[], Made]:
    def made() -> Made:
        import timm
        import torch

        return timm.create_model(name, num_classes=CLASSES), torch.randn(shape), CLASSES

    return made


def _recurrent(name: str, **options: Any) -> Callable[[], Made]:
    """A recurrent layer of torch.nn, whose last result is classified."""

    def made() -> Made:
        import torch
        from torch import nn

        class Listener(nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.layer = getattr(nn, name)(12, 16, batch_first=True, **options)
                self.last = nn.Linear(32 if options.get("bidirectional") else 16, CLASSES)

            def forward(self, x: Any) -> Any:
                return self.last(self.layer(x)[0].mean(1))

        return Listener(), torch.randn(4, 15, 12), CLASSES

    return made


def _picture(*layers: Callable[[Any], Any], size: int = 16) -> Callable[[], Made]:
    """Layers of pictures, then a product."""

    def made() -> Made:
        import torch
        from torch import nn

        x = torch.randn(4, 3, size, size)
        net = nn.Sequential(*(layer(nn) for layer in layers), nn.Flatten(), nn.LazyLinear(CLASSES))
        net(x)  # which says how large lazy layers are
        return net, x, CLASSES

    return made


def sounds() -> Made:
    """Dilated convolutions along time."""
    import torch
    from torch import nn

    layers, c_in = list[Any](), 8
    for dilation in (1, 2, 4, 8):
        layers += [nn.Conv1d(c_in, 16, 3, padding=dilation, dilation=dilation), nn.GroupNorm(4, 16), nn.GELU()]
        c_in = 16
    layers += [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, CLASSES)]
    return nn.Sequential(*layers), torch.randn(4, 8, 40), CLASSES


def volumes() -> Made:
    import torch
    from torch import nn

    body = [nn.Conv3d(2, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 8, 3), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.LazyLinear(CLASSES)), torch.randn(4, 2, 8, 8, 8), CLASSES


def words() -> Made:
    """A decoder layer over embeddings."""
    import torch
    from torch import nn

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(50, 32), nn.Embedding(12, 32)
            self.layer = nn.TransformerDecoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.last = nn.Linear(32, CLASSES)

        def forward(self, x: Any) -> Any:
            read = self.words(x) + self.places(torch.arange(12))
            return self.last(self.layer(read, read).mean(1))

    return Reader(), torch.randint(0, 50, (4, 12)), CLASSES


def mixer() -> Made:
    """Products over channels and over places."""
    import torch
    from torch import nn

    class Mixer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.norm = nn.Conv2d(3, 24, 4, 4), nn.LayerNorm(24)
            self.places = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            self.channels = nn.Sequential(nn.Linear(24, 48), nn.SiLU(), nn.Linear(48, 24))
            self.last = nn.Linear(24, CLASSES)

        def forward(self, x: Any) -> Any:
            h = self.patches(x).flatten(2).transpose(1, 2)
            h = h + self.places(self.norm(h).transpose(1, 2)).transpose(1, 2)
            return self.last((h + self.channels(self.norm(h))).mean(1))

    return Mixer(), torch.randn(4, 3, 16, 16), CLASSES


VARIETY: Mapping[str, Callable[[], Made]] = {
    "lstm_both_ways": _recurrent("LSTM", bidirectional=True, num_layers=2),
    "rnn": _recurrent("RNN", nonlinearity="relu"),
    "up_and_down": _picture(
        lambda nn: nn.Conv2d(3, 12, 3, 2, 1),
        lambda nn: nn.InstanceNorm2d(12, affine=True),
        lambda nn: nn.ConvTranspose2d(12, 8, 4, 2, 1),
        lambda nn: nn.Mish(),
        lambda nn: nn.Upsample(scale_factor=1.5, mode="bilinear"),
        lambda nn: nn.Conv2d(8, 4, 3, 3),
        lambda nn: nn.PReLU(4),
    ),
    "shuffled": _picture(
        lambda nn: nn.PixelUnshuffle(2),
        lambda nn: nn.Conv2d(12, 16, 3, groups=4, padding="same", dilation=2),
        lambda nn: nn.LocalResponseNorm(3),
        lambda nn: nn.Hardswish(),
        lambda nn: nn.PixelShuffle(2),
        lambda nn: nn.AdaptiveAvgPool2d((5, 3)),
    ),
    "squeezenet": vision("squeezenet1_1", CLASSES, 2, 3, 64, 64),
    "shufflenet": vision("shufflenet_v2_x0_5", CLASSES, 4, 3, 64, 64),
    "mobilenet_v3": vision("mobilenet_v3_small", CLASSES, 4, 3, 64, 64),
    "mnasnet": vision("mnasnet0_5", CLASSES, 4, 3, 64, 64),
    "convnext": _timm("convnext_atto", 2, 3, 64, 64),
    "tiny_vit": _timm("vit_tiny_patch16_224", 1, 3, 224, 224),
    **{each.__name__: each for each in (sounds, volumes, words, mixer)},
}
