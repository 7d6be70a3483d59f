"""Language models as programs: tokenizer, network and sampler in one folder of C."""
