"""Floor 6: between ONNX files and graphs, and onnx's own evaluator.

In: an ONNX model, from a file or an importer.
Out: a graph whose values have types, or an error that names the node.
First: `load.py`, then `nodes.py`.
"""
