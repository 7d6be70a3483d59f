"""What `import mccompile` offers: compile a model, load one as a Python function."""
