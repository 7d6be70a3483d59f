"""Floor 0: words that every other floor uses. Imports nothing of mccompile."""
