"""Floor 8: prints the plan as files. Decides nothing.

In: a plan, whose steps have kernels and addresses.
Out: a `Package`: C files, header, blob of weights, report, build files.
First: `package.py`.
"""
