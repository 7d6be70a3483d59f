"""Files of other formats: what they are, and the way from there to ONNX.

Invariant: what a file contains says more than what it is called; the commands can be pasted. Nothing in a file is
executed, and pickles are only listed.
"""

from __future__ import annotations

import io
import re
import shlex
import zipfile
from collections.abc import Iterable
from pathlib import Path

from ..base.records import dataclass
from ..importers import pickles, registry

_HEAD = 1 << 16  # bytes in which formats show themselves


@dataclass(frozen=True)
class Foreign:
    what: str
    fix: str  # FILE, FOLDER and MODEL.onnx stand for the file, where it lies, and what becomes of it


_TORCH = "pip install torch onnx onnxscript\n"
_OWN_SHAPE = "\n# with the shape of your own input in place of 1, 3, 224, 224"
_SCRIPT = (
    f"{_TORCH}python -c \"import torch; torch.onnx.export(torch.jit.load('FILE').eval(), "
    f"(torch.zeros(1, 3, 224, 224),), 'MODEL.onnx', dynamo=False)\"{_OWN_SHAPE}"
)
_WHOLE = (
    f"{_TORCH}python -c \"import torch; m = torch.load('FILE', weights_only=False).eval(); "
    f"torch.onnx.export(m, (torch.zeros(1, 3, 224, 224),), 'MODEL.onnx')\"{_OWN_SHAPE}\n"
    "# only where the file is from somebody you trust: loading it runs code"
)
_STATE = (
    "# in the Python that builds the network:\n"
    "model.load_state_dict(torch.load('FILE')); model.eval()\n"
    f"torch.onnx.export(model, (torch.zeros(1, 3, 224, 224),), 'MODEL.onnx'){_OWN_SHAPE}"
)
_FROZEN = (
    "pip install tensorflow tf2onnx\n"
    "python -m tf2onnx.convert --graphdef FILE --inputs x:0 --outputs y:0 --output MODEL.onnx\n"
    "# with the names of your own input and output in place of x:0 and y:0"
)
_EXPORT_AGAIN = "export it to ONNX where it was trained"
_OF_SAMPLES = "name the ONNX model in its place; samples follow it: --data FILE (`compile` calls that --quantize)"

_SAVED_MODEL = Foreign("part of a TensorFlow SavedModel", "name the folder it lies in: FOLDER")
_TORCHSCRIPT = Foreign("a TorchScript model (PyTorch)", _SCRIPT)
_STATE_DICT = Foreign("a PyTorch file with weights only, without the network", _STATE)
_MODULE = Foreign("a pickled PyTorch module", _WHOLE)
_ULTRALYTICS = Foreign(
    "a PyTorch checkpoint of Ultralytics YOLO", "pip install ultralytics\nyolo export model=FILE format=onnx"
)
_CORE_ML = Foreign("a Core ML model", f"nothing converts that any more: {_EXPORT_AGAIN}")
_FLATBUFFERS = {
    b"ORTM": Foreign("a model in onnxruntime's own format", "name the .onnx file that it was made from"),
}
_STARTS = {
    b"\x93NUMPY": Foreign("an array of numpy, not a network", _OF_SAMPLES),
    **dict.fromkeys(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), Foreign("a picture, not a network", "name the ONNX model in its place")
    ),
    b"version https://git-lfs": Foreign(
        "a placeholder of Git LFS, not the model itself", "git lfs install\ngit -C FOLDER lfs pull"
    ),
    b"ftrt": Foreign("an engine of TensorRT, built for one GPU", "name the .onnx file that it was built from"),
    b"\x1f\x8b": Foreign("compressed by gzip", "gunzip -c FILE > MODEL.onnx"),
}
_DUMPS = {
    rb'\s*\{\s*"name"\s*:\s*"tree"': Foreign(
        "trees that LightGBM dumped, which it does not load again", "save it with Booster.save_model, as .txt"
    ),
    rb'\s*\[\s*\{\s*"nodeid"': Foreign(
        "trees that XGBoost dumped, which it does not load again", "save it with Booster.save_model, as .ubj"
    ),
    rb"binf": Foreign("a model in XGBoost's old binary format", "load it with XGBoost 2 and save it as .ubj"),
}
_SUFFIXES = {
    ".pb": Foreign("called a frozen graph of TensorFlow", _FROZEN),
    ".pt": _TORCHSCRIPT,
    ".pth": _STATE_DICT,
    ".mlmodel": _CORE_ML,
    **dict.fromkeys((".caffemodel", ".prototxt"), Foreign("called a model of Caffe", _EXPORT_AGAIN)),
    ".xml": Foreign("called a model of OpenVINO", "name the .onnx file that it was made from"),
    ".rknn": Foreign("called a model built for one chip", "name the .onnx file that it was made from"),
}
_PLAIN_TEXT = Foreign("text, not a network", "name the ONNX model in its place")
_TEXTS = {
    ".py": Foreign(
        "a program in Python, not a network",
        "# at its end, then run it:\n"
        f"torch.onnx.export(model.eval(), (torch.zeros(1, 3, 224, 224),), 'MODEL.onnx'){_OWN_SHAPE}",
    ),
    **dict.fromkeys((".csv", ".tsv"), Foreign("a table of text, not a network", _OF_SAMPLES)),
}
_LEGACY_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # a pickle of a magic number, then more pickles
_FILE_PAGE = re.compile(rb"https://(github\.com|huggingface\.co)/[\w./-]+?/blob/([\w.%/-]+\.onnx)")


def recognised(path: Path, data: bytes) -> Foreign | None:
    """What a file or folder is that is not ONNX; None where nothing says it."""
    found = _of_folder(path) if path.is_dir() else _of_content(data) or _of_name(path)
    return None if found is None else _filled_in(found, path)


def plain_text(path: Path, data: bytes) -> Foreign | None:
    """What nothing has recognised, where it is text: a program that builds a network, a table of samples, notes."""
    try:
        printable = re.sub(r"[\n\r\t]", "", data[:_HEAD].decode("utf-8")).isprintable()
    except UnicodeDecodeError:
        return None
    return _filled_in(_TEXTS.get(path.suffix.lower(), _PLAIN_TEXT), path) if data and printable else None


def _filled_in(found: Foreign, path: Path) -> Foreign:
    """With the names of files in its fix."""
    named = path if path.name else Path("model")  # `.` and `/` have no name
    made = named.with_suffix(".onnx") if path.suffix != ".onnx" else path.with_name(f"{path.stem}.new.onnx")
    quote = _in_python if "'FILE'" in found.fix else shlex.quote
    names = {"FILE": quote(str(path)), "FOLDER": quote(str(path.parent)), "MODEL.onnx": quote(str(made))}
    return Foreign(found.what, re.sub(r"\bFILE\b|\bFOLDER\b|MODEL\.onnx", lambda name: names[name[0]], found.fix))


def _in_python(name: str) -> str:
    """A name within a text of Python, within double quotes of a shell."""
    return re.sub(r"([\\\"$`])", r"\\\1", name.replace("\\", "\\\\").replace("'", "\\'"))


def _of_folder(path: Path) -> Foreign | None:
    if path.suffix == ".mlpackage":
        return _CORE_ML
    models = sorted(path.glob("*.onnx"))
    fix = f"did you mean {shlex.quote(str(models[0]))}?" if models else "name an ONNX file"
    if (path / "report.json").is_file():
        return Foreign("a folder that mccompile has written", _of_report(path))
    return Foreign("a folder", fix)


def _of_report(folder: Path) -> str:
    """The model that an output folder was made of, where one of that name lies here or beside it."""
    made = sorted(path.stem for path in folder.glob("*.h"))
    near = (where / f"{stem}.onnx" for stem in made for where in (Path(), folder.parent))
    found = next((path for path in near if path.is_file()), None)
    return f"did you mean {shlex.quote(str(found))}?" if found else "name the model that it was compiled from"


def _of_name(path: Path) -> Foreign | None:
    suffix = path.suffix.lower()
    if path.name == "saved_model.pb":
        return _SAVED_MODEL
    importer = next((importer for importer in registry.IMPORTERS if suffix in importer.suffixes), None)
    if importer:
        return Foreign(f"called {importer.what}, but does not begin as one", "export or copy it again")
    return _SUFFIXES.get(suffix)


def _of_content(data: bytes) -> Foreign | None:
    for start, found in _STARTS.items():
        if data.startswith(start):
            return found
    if data[4:8] in _FLATBUFFERS:
        return _FLATBUFFERS[data[4:8]]
    if data.startswith(b"PK\x03\x04"):
        return _of_zip(data)
    if data.startswith(_LEGACY_TORCH):
        return _of_pickle(data[len(_LEGACY_TORCH) :]) or _STATE_DICT
    if re.match(rb"\x80[\x02-\x05]", data):
        return _of_pickle(data)
    head = data[:_HEAD].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return _of_page(data)
    for form, foreign in _DUMPS.items():
        if re.match(form, data[:_HEAD]):
            return foreign
    if re.match(rb".{7}\0\{\"", data[:_HEAD], re.DOTALL):
        loaded = _STATE.replace("torch.load('FILE')", "safetensors.torch.load_file('FILE')")
        return Foreign("a file of weights (safetensors), without the network", loaded)
    return None


def _of_page(data: bytes) -> Foreign:
    page = _FILE_PAGE.search(data)
    what = "a web page, not the model itself"
    if page is None:
        return Foreign(what, "download the file itself: behind `Raw` or `Download` on its page")
    place = b"/resolve/" if page[1] == b"huggingface.co" else b"/raw/"
    return Foreign(what, f"curl -L -o FILE {page[0].replace(b'/blob/', place).decode()}")


def _of_zip(data: bytes) -> Foreign | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            pickled = next((name for name in names if name.endswith("/data.pkl")), None)
            if pickled is not None and _any(names, r"/(code/|constants\.pkl$)"):
                return _TORCHSCRIPT
            if pickled is not None:
                return (_of_pickle(archive.read(pickled)) if _is_small(archive, pickled) else None) or _STATE_DICT
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError):
        return None
    if names and all(name.endswith(".npy") for name in names):
        return Foreign("arrays of numpy, not a network", _OF_SAMPLES)
    inside = next((name for name in names if name.endswith(".onnx")), None)
    return Foreign("a zip archive", f"unzip -p FILE {shlex.quote(inside)} > MODEL.onnx" if inside else "unzip FILE")


def _any(names: Iterable[str], pattern: str) -> bool:
    return any(re.search(pattern, name) for name in names)


def _is_small(archive: zipfile.ZipFile, name: str) -> bool:
    return archive.getinfo(name).file_size <= pickles.LARGEST


def _of_pickle(data: bytes) -> Foreign | None:
    """By the modules whose classes it names."""
    named = pickles.names(data)
    modules = {name.partition(".")[0] for name in named}
    if "ultralytics" in modules:
        return _ULTRALYTICS
    if "torch" in modules:
        homes = {name.rpartition(".")[0] for name in named}
        inside = {home for home in homes if not home.startswith(("torch._utils", "torch.storage", "torch._"))}
        return _STATE_DICT if inside <= {"torch", "collections", "_codecs", "numpy"} else _MODULE
    return None
