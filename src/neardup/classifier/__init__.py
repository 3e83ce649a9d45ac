"""A classifier: what it is made of, what it says of a pair, and the file that it is kept in."""
