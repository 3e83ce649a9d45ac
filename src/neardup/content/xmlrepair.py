"""XML that is not well-formed, put right as text: references, stray characters, and the tags of one item at a time.

libxml2's own recovery does not serve: it drops a bare ``&`` or ``<``, and where a tag is not closed it puts the items
that follow into each other. Every pattern here takes time in proportion to the text.
"""

from __future__ import annotations

import re
from html import escape
from html.entities import html5

#: Elements inside one another in an item that has to be put right; libxml2's own limit is 256.
DEEPEST = 250
#: Characters at the start of a file in which namespaces are looked for.
LONGEST_HEADER = 1 << 16
#: How the namespaces of RSS 0.90, 1.0 and 2.0 begin, where there are any.
RSS = (
    "http://purl.org/rss/",
    "http://my.netscape.com/",
    "http://channel.netscape.com/",
    "http://backend.userland.com/",
)
_WORD = r"[^\W\d][\w.-]*+"
#: The name of an element or attribute, with its prefix.
NAME = rf"(?:{_WORD}:)?{_WORD}"

#: What prefixes stand for that feeds use without saying so.
_USUAL_SPACES = {
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "atom": "http://www.w3.org/2005/Atom",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
_ASIDE = r"<!\[CDATA\[(?P<characters>.*?)(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_REFERENCE = re.compile(
    rf"{_ASIDE}|&(?:(?P<name>[A-Za-z]\w{{1,31}});|#(?P<number>\d{{1,7}}|[xX][\dA-Fa-f]{{1,6}});)?", re.DOTALL
)
_NO_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})
#: A tag holds no ``<``, not even in a value.
_TOKEN = re.compile(
    rf"""{_ASIDE}|<\?.*?(?:\?>|\Z)|<(?P<closes>/?)(?P<name>{NAME})(?P<rest>(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+)>""",
    re.DOTALL,
)
_START = re.compile(rf"<({NAME})")
_ATTRIBUTE = re.compile(rf"""(?<![\w.:-])({NAME})\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=]+))""")
_SPACES = re.compile(rf"""\sxmlns(?::({_WORD}))?\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")
#: Elements of HTML without an end, and those that the next of their kind ends.
_VOID = frozenset({"br", "hr", "img", "input", "wbr"})
_SELF_ENDING = frozenset({"p", "li", "dt", "dd", "tr", "td"})


def html_names(text: str) -> str:
    """Return XML with HTML's names of characters as those characters."""
    return _REFERENCE.sub(lambda match: _character(match) or match[0], text)


def whole_references(text: str) -> str:
    """Return XML with HTML's names of characters as those characters, and what is no reference as text."""
    return _REFERENCE.sub(_as_known, text)


def xml_characters(text: str) -> str:
    """Return XML without the control characters that it may not hold; a space takes the place of each."""
    return _NO_CHARACTER.sub(" ", text)


def _character(match: re.Match[str]) -> str:
    """Return the character that HTML has for a name; empty where it has none, or XML has one as well."""
    name = match["name"]
    return "" if name is None or name in _XML_NAMES else escape(html5.get(f"{name};", ""))


def _as_known(match: re.Match[str]) -> str:
    whole, number = match[0], match["number"]
    if whole.startswith("<") or match["name"] in _XML_NAMES:
        return whole
    if number is not None:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        return whole if code < 0x110000 and not _NO_CHARACTER.match(chr(code)) else "\ufffd"
    return _character(match) or f"&amp;{whole[1:]}"


def item_starts(text: str, name: str, root: str, spaces: dict[str, str]) -> list[int]:
    """Return where the items of a file begin.

    Parameters
    ----------
    text : str
        The file.
    name : str
        What its items are called; their prefix is none, that of the root, or one of RSS.
    root : str
        The name of its root, with the prefix.
    spaces : dict of str to str
        What prefixes stand for.
    """
    prefix = root.rpartition(":")[0]
    found = []
    for match in re.finditer(rf"{_ASIDE}|<(?:(?P<prefix>{_WORD}):)?{name}(?=[\s/>])", text, re.DOTALL):
        own = match["prefix"] or ""
        if not match[0].startswith("<!") and (own in ("", prefix) or spaces.get(own, "").startswith(RSS)):
            found.append(match.start())
    return found


def spaces_of(text: str) -> dict[str, str]:
    """Return what prefixes stand for: as the head of a file says, else as is usual."""
    found = dict(_USUAL_SPACES)
    for prefix, quoted, single in reversed(_SPACES.findall(text[:LONGEST_HEADER])):
        found[prefix] = (quoted or single).replace('"', "&quot;")
    return found


class Piece:
    """One item of a file that is not well-formed.

    Parameters
    ----------
    text : str
        The file, its references put right.
    start, stop : int
        Where the item begins, and where the next one does.

    Attributes
    ----------
    written : str
        The item as it is there.
    mended : str
        The same with its tags put right: what could not be a tag is text, tags that nothing opened are left out, those
        that nothing closes are closed where an element around them is.
    is_closed : bool
        Whether its end is there.
    is_too_deep : bool
        Whether its elements are more than `DEEPEST` inside one another; then it is not complete.
    """

    def __init__(self, text: str, start: int, stop: int) -> None:
        self.is_closed = self.is_too_deep = False
        self._prefixes: set[str] = set()
        self._opened: list[str] = []
        self._parts: list[str] = []
        at = start
        first = _START.match(text, start, stop)
        if first is not None and _TOKEN.match(text, start, stop) is None:
            # The start tag itself is broken.
            self._open(first[1], "")
            at = first.end()
        for token in _TOKEN.finditer(text, at, stop):
            self._parts.append(_without_tags(text[at : token.start()]))
            at = token.end()
            self._take(token)
            self.is_closed = not self._opened
            if self.is_closed or self.is_too_deep:
                break
        else:
            self._parts.append(_without_tags(text[at:stop]))
            at = stop
        self._close_until("")
        self.written, self.mended = text[start:at], "".join(self._parts)

    def _take(self, token: re.Match[str]) -> None:
        name, rest = token["name"], token["rest"]
        if name is None:
            self._parts.append(escape(token["characters"] or "", quote=False))
        elif token["closes"]:
            if name in self._opened:
                self._close_until(name)
        else:
            if name in _SELF_ENDING and self._opened[-1:] == [name]:
                self._close_until(name)
            self._open(name, rest)
            if rest.endswith("/") or name.lower() in _VOID:
                self._close_until(name)
            self.is_too_deep = len(self._opened) > DEEPEST

    def _open(self, name: str, rest: str) -> None:
        found: dict[str, str] = {}
        for attribute, *values in _ATTRIBUTE.findall(rest):
            found.setdefault(attribute, "".join(values).replace('"', "&quot;"))
        self._prefixes.update(known.partition(":")[0] for known in (name, *found) if ":" in known)
        self._parts += [f"<{name}", *(f' {attribute}="{value}"' for attribute, value in found.items()), ">"]
        self._opened.append(name)

    def _close_until(self, name: str) -> None:
        """Close what is open, an element of that name last; all where none has it."""
        while self._opened:
            last = self._opened.pop()
            self._parts.append(f"</{last}>")
            if last == name:
                return

    def within(self, markup: str, spaces: dict[str, str]) -> str:
        """Return a document whose root holds nothing but a markup of this item, and says what its prefixes stand for.

        Parameters
        ----------
        markup : str
            `written` or `mended`.
        spaces : dict of str to str
            What prefixes stand for in the file.
        """
        known = {prefix: spaces.get(prefix, f"urn:undeclared:{prefix}") for prefix in self._prefixes - {"xml", "xmlns"}}
        declared = [f' xmlns:{prefix}="{name}"' for prefix, name in sorted(known.items())]
        default = spaces.get("", "")
        return f'<x xmlns="{default}"{"".join(declared)}>{markup}</x>'


def _without_tags(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")
