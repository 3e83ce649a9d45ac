"""Labelling: the choice of the next pair, the page and its server, import and export of labels."""
