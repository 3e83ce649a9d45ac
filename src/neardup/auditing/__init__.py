"""How good a result is, without gold: a sample of it, judged, and what that says of the whole."""
