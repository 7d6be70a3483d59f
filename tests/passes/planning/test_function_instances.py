"""Calls share a function only where its text is the same."""

from __future__ import annotations

from pathlib import Path

from onnx import parser

import mccompile

# what is cut out of x lies in rows of 24, out of y in rows of 10
TRANSFORMS = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[3, 3, 8] x1, float[3, 3, 8] x2, float[3, 1, 10] y1, float[3, 1, 10] y2)
    => (float[3, 1, 5, 2] a1, float[3, 1, 5, 2] a2, float[3, 1, 5, 2] b1, float[3, 1, 5, 2] b2)
    <int64[2] zero = {0, 0}, int64[2] to = {1, 8}, int64[2] axes = {1, 2}, int64[1] last = {3}, int64 along = {2}> {
        %s
    }"""
ONE = """%(out)s_cut = Slice(%(x)s, zero, to, axes)
        %(out)s_wide = Unsqueeze(%(out)s_cut, last)
        %(out)s = DFT <onesided = 1> (%(out)s_wide, , along)"""


def test_transforms_of_other_strides_have_functions_of_their_own(tmp_path: Path) -> None:
    """Their templates are given Python functions, of which a later one may lie where an earlier one lay."""
    nodes = "\n".join(ONE % {"x": x, "out": out} for x, out in (("x1", "a1"), ("y1", "b1"), ("x2", "a2"), ("y2", "b2")))
    path = tmp_path / "dft.onnx"
    path.write_bytes(parser.parse_model(TRANSFORMS % nodes).SerializeToString())
    for _ in range(5):
        steps = mccompile.compile(path).report["steps"]
        functions = [step["function"] for step in steps if step["kernel"].startswith("dft/")]
        assert len(functions) == 4 and len(set(functions)) == 2
