"""A dated corpus run through the window, as if its documents arrived one after the other."""
