"""Inputs and outputs in the form that users pass and read: element types, layouts, scales.

In: forms that a user asks for, such as u8 or NHWC.
Out: a graph or a program whose ends have them.
First: `io_forms.py`.
"""
