"""Tokenizers of language models as a library of C.

In: tokenizer.json or a GGUF file.
Out: a folder of C: text to tokens and back.
First: `reading.py`, then `library.py`.
"""
