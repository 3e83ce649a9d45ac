"""Reports: a page of what a run did, made of what a run knows: what came in, stayed and went, and why."""
