"""Why two texts match or not, in plain Python by the definitions."""
