"""lower_qdq: operators between quantized tensors become operators over integers."""
