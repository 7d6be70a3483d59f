"""Small networks of many kinds, whose losses `benchmarks.training_losses` compares: PyTorch modules at random."""

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

        class Listener(nn.Module):
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

    class Reader(nn.Module):
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

    class Mixer(nn.Module):
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


def segments() -> Made:
    """A U-Net that tells classes of places."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
            self.second = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.Hardswish())
            self.third = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1), nn.LeakyReLU())
            self.up = nn.ConvTranspose2d(16, 12, 2, 2)
            self.joined = nn.Sequential(nn.Conv2d(24, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ELU())
            self.upper = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.last = nn.Conv2d(20, CLASSES, 1)

        def forward(self, x: Any) -> Any:
            first = self.first(x)
            second = self.second(first)
            joined = self.joined(torch.cat([self.up(self.third(second)), second], 1))
            return self.last(torch.cat([self.upper(joined), first], 1))

    return Net(), torch.randn(2, 3, 16, 16), CLASSES


def excited() -> Made:
    """Depthwise convolutions, weighed by channel."""
    import torch
    from torch import nn

    class Weighed(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
            self.weigh = nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.Softplus(), nn.Conv2d(4, channels, 1)
            )
            self.norm = nn.GroupNorm(1, channels)

        def forward(self, x: Any) -> Any:
            h = nn.functional.hardswish(self.depthwise(x))
            return x + self.norm(h * nn.functional.hardsigmoid(self.weigh(h)))

    body = [nn.Conv2d(3, 16, 3, 2, 1), Weighed(16), nn.Conv2d(16, 24, 3, 2, 1), Weighed(24), nn.Tanh()]
    return nn.Sequential(*body, nn.Flatten(), nn.LazyLinear(CLASSES)), torch.randn(4, 3, 16, 16), CLASSES


def sentences() -> Made:
    """Embeddings, a causal attention with heads that share keys, gated products and RMSNorm."""
    import torch
    from torch import nn

    class Norm(nn.Module):  # one of PyTorch's exporters has no nn.RMSNorm
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(32))

        def forward(self, x: Any) -> Any:
            return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.before, self.behind = nn.Embedding(40, 32), Norm(), Norm()
            self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 16), nn.Linear(32, 16)
            self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)
            self.last = nn.Linear(32, CLASSES, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.words(x)
            normed = self.before(h)
            q, k, v = (
                part(normed).unflatten(2, (-1, 8)).transpose(1, 2) for part in (self.query, self.key, self.value)
            )
            k, v = (part.repeat_interleave(2, 1) for part in (k, v))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + mixed.transpose(1, 2).flatten(2)
            normed = self.behind(h)
            h = h + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))
            return self.last(h).transpose(1, 2)

    return Reader(), torch.randint(0, 40, (3, 12)), CLASSES


VARIETY: Mapping[str, Callable[[], Made]] = {
    "lstm_both_ways": _recurrent("LSTM", bidirectional=True, num_layers=2),
    "lstm": _recurrent("LSTM"),
    "gru_both_ways": _recurrent("GRU", bidirectional=True),
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
        lambda nn: nn.AvgPool2d((5, 3)),
    ),
    "squeezenet": vision("squeezenet1_1", CLASSES, 2, 3, 64, 64),
    "shufflenet": vision("shufflenet_v2_x0_5", CLASSES, 4, 3, 64, 64),
    "mobilenet_v3": vision("mobilenet_v3_small", CLASSES, 4, 3, 64, 64),
    "mnasnet": vision("mnasnet0_5", CLASSES, 4, 3, 64, 64),
    "convnext": _timm("convnext_atto", 2, 3, 64, 64),
    "tiny_vit": _timm("vit_tiny_patch16_224", 1, 3, 224, 224),
    "resnet10t": _timm("resnet10t", 2, 3, 64, 64),
    "efficientnet_lite0": _timm("efficientnet_lite0", 2, 3, 64, 64),
    "ghostnet": _timm("ghostnet_050", 2, 3, 64, 64),
    "regnet": _timm("regnety_002", 2, 3, 64, 64),
    "poolformer": _timm("poolformer_s12", 1, 3, 64, 64),
    "mobilevit": _timm("mobilevit_xxs", 1, 3, 64, 64),
    "edgenext": _timm("edgenext_xx_small", 1, 3, 64, 64),
    **{each.__name__: each for each in (sounds, volumes, words, mixer, segments, excited, sentences)},
}
