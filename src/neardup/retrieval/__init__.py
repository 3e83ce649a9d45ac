"""The most similar documents, and the near-duplicates of a new one."""
