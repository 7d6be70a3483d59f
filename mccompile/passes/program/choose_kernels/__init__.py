"""choose_kernels: kernels chosen by the arena of the whole plan, by plans on trial.

In: a program and the candidates of its calls.
Out: a kernel for each call.
First: `choose_kernels.py`.
"""
