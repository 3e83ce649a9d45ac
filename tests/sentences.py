"""The check of a message: it names the value, the rule and the way out, in any wording."""

from __future__ import annotations


def says(message: object, *parts: str) -> bool:
    """Return whether a message is one line that contains all parts."""
    text = str(message)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{text!r} does not say {missing}"
    assert "\n" not in text.strip(), f"{text!r} is more than one line"
    return True
