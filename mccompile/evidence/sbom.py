"""The bill of materials of generated code, as SPDX 2.3: files with hashes and licences, and the tools that made them.

Invariant: nothing in it changes from one build to the next of the same model with the same tools.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version as version_of
from typing import Any

from .. import __version__

_EPOCH = "1970-01-01T00:00:00Z"  # SPDX asks for a time, and builds are the same at any
_PACKAGES = ("onnx", "numpy", "jinja2", "click", "cffi")  # those that mccompile runs with
_OURS = "Apache-2.0"


def sbom(name: str, code: Mapping[str, bytes], model: str, model_sha256: str) -> dict[str, Any]:
    """Of the files of generated code, made from a model of that name and hash."""
    packages = [
        _package("model", model, "", checksums=[{"algorithm": "SHA256", "checksumValue": model_sha256}]),
        _package("mccompile", "mccompile", __version__, _OURS),
        _package("python", "python", platform.python_version(), "PSF-2.0"),
        *(_package(each, each, version_of(each)) for each in _PACKAGES),
    ]
    files = [_file(path, code[path]) for path in sorted(code)]
    made = _package("code", name, "", filesAnalyzed=False)
    relations = [("DOCUMENT", "DESCRIBES", "code"), ("code", "GENERATED_FROM", "model")]
    relations += [("mccompile", "BUILD_TOOL_OF", "code"), ("python", "RUNTIME_DEPENDENCY_OF", "mccompile")]
    relations += [(each, "DEPENDENCY_OF", "mccompile") for each in _PACKAGES]
    relations += [("code", "CONTAINS", _id(path)) for path in sorted(code)]
    digest = hashlib.sha256("".join(f"{f['fileName']}{f['checksums']}" for f in files).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
        "creationInfo": {"created": _EPOCH, "creators": [f"Tool: mccompile-{__version__}"]},
        "packages": [made, *packages],
        "files": files,
        "relationships": [
            {"spdxElementId": f"SPDXRef-{a}", "relationshipType": kind, "relatedSpdxElement": f"SPDXRef-{b}"}
            for a, kind, b in relations
        ],
    }


def _package(identifier: str, name: str, version: str, licence: str = "NOASSERTION", **more: Any) -> dict[str, Any]:
    return {
        "SPDXID": f"SPDXRef-{identifier}",
        "name": name,
        **({"versionInfo": version} if version else {}),
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def _file(path: str, contents: bytes) -> dict[str, Any]:
    """The headers of the runtime are ours; what is made from the model is its owner's."""
    licence = _OURS if path.startswith("runtime/mcc") else "NOASSERTION"
    return {
        "SPDXID": f"SPDXRef-{_id(path)}",
        "fileName": f"./code/{path}",
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(contents, usedforsecurity=False).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(contents).hexdigest()},
        ],
        "licenseConcluded": licence,
        "licenseInfoInFiles": [licence],
        "copyrightText": "NOASSERTION",
    }


def _id(path: str) -> str:
    return "file-" + "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in path)
