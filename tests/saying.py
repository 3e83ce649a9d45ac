"""What a message must say: the value, the rule's name and the way out, in any wording."""

from __future__ import annotations


def says(message: object, *parts: str) -> bool:
    """Whether a message is one sentence that names all of these, whatever stands between them."""
    text = str(message)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{text!r} does not say {missing}"
    assert "\n" not in text.strip(), f"{text!r} is more than one line"
    return True
