"""ImageDecoder: pixels from a file, of the formats that need no decompression."""

from __future__ import annotations

from ..base.dtypes import bool_, u8
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.decode_image import PIXELS, DecodeImage
from ..program.ir import If, Stop
from .api import Fact, Invalid, Lowering, Operator, Site


@dataclass(frozen=True)
class ImageDecoder(Operator):
    """The size of the image is what the model declares: a run with another file ends with a status."""

    versions = (20,)
    pixel_format: str = "RGB"

    def infer(self, site: Site) -> list[Fact]:
        file = site.type(0)
        if file.dtype is not u8 or file.rank != 1 or self.pixel_format not in PIXELS:
            raise Invalid(f"{self.pixel_format} pixels of {file}, which is no 1-D tensor of u8")
        shape = site.declared(0, "the file")
        if len(shape) != 3 or shape[2] != (1 if self.pixel_format == "Grayscale" else 3):
            raise Invalid(f"the model declares {shape}, which is not an image of {self.pixel_format} pixels")
        return [Fact(TensorType(u8, shape))]

    def lower(self, to: Lowering) -> None:
        image, sound = to.call(DecodeImage(self.pixel_format), [to.input(0)], to.type(), TensorType(bool_, ()))
        why = "the file is neither an uncompressed BMP nor a PNM, or its image is not of the declared size"
        to.body.append(If(sound, [], [Stop(why, to.provenance, "IMAGE")], to.provenance))
        to.set(0, image)
