"""`python -m mccompile` is the command `mccompile`."""

from .cli import main

if __name__ == "__main__":
    main()
