"""choose_kernels: chooses kernels by the arena of the whole plan, in trial plans.

In: a program and the candidates of its calls.
Out: a kernel for each call.
First: `choose_kernels.py`.
"""
