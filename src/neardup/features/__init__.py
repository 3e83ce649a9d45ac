"""Comparable text to features, vectors and signatures, and the statistics of a collection."""
