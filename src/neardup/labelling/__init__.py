"""Labelling: which pairs to ask, a page that asks them, and a store of what people said."""
