"""From the finished program to the plan and its properties: functions, addresses, estimates.

In: a program whose kernels are chosen.
Out: a plan, and estimates of its time and size.
First: `plan_memory.py`.
"""
