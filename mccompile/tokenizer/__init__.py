"""Tokenizers of language models as a library of C."""
