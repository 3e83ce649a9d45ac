"""Who stays: keep orders, keepers, families, and the pairs of documents that say why."""
