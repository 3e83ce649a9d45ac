"""The version, which messages, pages and stores name."""

__version__ = "0.1.0"
