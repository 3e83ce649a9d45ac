"""How an exploration is shown: a page, its parts and charts, and a cell of a notebook."""
