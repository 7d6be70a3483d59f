"""int8 in SIMD and on microcontrollers: dot products, patches, depthwise windows, requantization.

In: the sizes of an int8 product or convolution, and what a processor multiplies.
Out: C for its sums and for their rescaling.
First: `dot.py`.
"""
