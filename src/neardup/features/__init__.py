"""Comparable text to features, vectors and signatures, and what a collection says of them."""
