"""Inputs and outputs as users hand them over: forms, layouts, scales.

In: forms that a user asks for, such as u8 or NHWC.
Out: a graph or a program whose ends have them.
First: `io_forms.py`.
"""
