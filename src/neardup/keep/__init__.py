"""Keep orders, keepers, families, verdicts, and pairs of documents."""
