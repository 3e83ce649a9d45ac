"""Verdicts over HTTP: named indexes, one writer, the page, clients, and tools for agents."""
