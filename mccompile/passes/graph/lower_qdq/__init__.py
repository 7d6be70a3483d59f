"""lower_qdq: operators between quantized tensors become operators over integers.

In: operators between DequantizeLinear and QuantizeLinear.
Out: operators over integers.
First: `lower_qdq.py`.
"""
