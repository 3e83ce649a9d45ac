"""``order``: which of two is kept; ``keepers``: keepers, their ties, families; ``pairs``, ``verdicts``: all by id."""
