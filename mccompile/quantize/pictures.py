"""Folders of pictures cannot be used as samples: the size, the order of channels and the scale are those of training.

They are refused with the command that makes samples of them.
"""

from __future__ import annotations

from pathlib import Path

from ..base.errors import BadFile, Problem
from ..graph.ir import Graph

_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
_MODES = {1: "L", 3: "RGB"}  # of Pillow, by channels


def refuse_pictures(folder: Path, graph: Graph) -> None:
    """Raises BadFile where the folder holds pictures, and the model takes one."""
    found = next((path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _ENDINGS), None)
    shape = graph.inputs[0].type.shape if len(graph.inputs) == 1 else ()
    sizes = [size if isinstance(size, int) else 224 for size in shape]
    if found is None or len(sizes) != 4 or not {sizes[1], sizes[3]} & _MODES.keys():
        return
    is_first = sizes[1] in _MODES  # channels in front of rows
    channels, height, width = (sizes[1], *sizes[2:]) if is_first else (sizes[3], *sizes[1:3])
    pixels = f"n.asarray(Image.open(f).convert('{_MODES[channels]}').resize(({width}, {height})), 'f4')"
    placed = f"{pixels}.reshape({height}, {width}, {channels})" + (".transpose(2, 0, 1)" if is_first else "")
    files = f"sorted(glob.glob('{folder}/**/*{found.suffix}', recursive=True))"
    made = f"n.savez('{folder.name}.npz', n.stack([{placed} / 255 for f in {files}]))"
    fix = (
        f'pip install pillow\npython -c "import glob, numpy as n; from PIL import Image; {made}"\n'
        f"# with the scale of training in place of / 255, then name {folder.name}.npz"
    )
    why = f"it holds pictures, such as {found.name}: how they were scaled in training, only you know"
    raise BadFile(Problem("pictures cannot be used as samples", str(folder), why, fix))
