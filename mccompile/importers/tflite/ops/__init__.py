"""One file per operator of TFLite, or family of them: each writes itself out as ONNX.

In: an operator of the file with its tensors.
Out: nodes of ONNX.
First: `pad.py`.
"""
