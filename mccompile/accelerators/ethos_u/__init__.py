"""Ethos-U55, U65 and U85 of Arm, by its compiler Vela (extra `ethos-u`).

In: a region of operators on int8 or uint8.
Out: Vela's command stream and weights, and calls of Arm's driver.
First: `backend.py`.
"""
