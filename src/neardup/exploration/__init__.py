"""Look before you choose: how similar a corpus is to itself, what it is made of, and what follows for a recipe."""
