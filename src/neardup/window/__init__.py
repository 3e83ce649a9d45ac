"""The sliding window: documents of the last hours, and whom a new one matches among them."""
