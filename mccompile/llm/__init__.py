"""Language models as programs: tokenizer, network and sampler in one folder of C.

In: a folder of Hugging Face, or a GGUF file.
Out: a folder of C that reads and writes text.
First: `program.py`.
"""
