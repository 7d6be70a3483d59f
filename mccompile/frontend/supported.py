"""What operators can be compiled, by their names: those of `ops/`, and those that are decomposed while a model
is read. Any operator that ONNX gives a body for is compiled through that, whether it stands here or not."""

from __future__ import annotations

from collections.abc import Mapping

from ..ops.api import OWN, registry
from . import composed, searches, sequences


def supported() -> Mapping[str, tuple[int, ...]]:
    """The versions of each operator's meaning; none where it is decomposed. What passes make (domain `mccompile`) is in
    no file, so it is not here."""
    classes = {key: cls for key, cls in registry().items() if cls.domain != OWN}
    names = [*composed.names(), *searches.NAMES, *(("", name) for name in sequences.WRITERS)]
    found: dict[str, tuple[int, ...]] = {title(domain, name): () for domain, name in names}
    found |= {title(domain, name): cls.versions for (domain, name), cls in classes.items()}
    return dict(sorted(found.items()))


def title(domain: str, name: str) -> str:
    return f"{domain}::{name}" if domain else name
