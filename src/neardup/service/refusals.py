"""Refusals of the service as problem details (RFC 9457), and those of requests that do not match their type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from neardup.errors import quoted

#: Seconds after which a refused caller may try again.
_RETRY_AFTER_S = 1
#: The most characters of the sentence; a value in a longer one loses its middle.
_MAX_DETAIL = 2000
#: The largest request of which a sentence repeats the refused value: it is read once more.
_MAX_REPEATED = 1 << 16

T = TypeVar("T")


class Answer(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    status: int = 200
    kind: str = "application/json"  #: its media type
    headers: Mapping[str, str] = {}  #: further headers, in lower case


class Problem(Exception):
    """A refusal: an HTTP status, a sentence (the value, the rule, the way out), and further members of the answer."""

    def __init__(self, status: int, detail: str, **members: Any) -> None:
        if len(detail) > _MAX_DETAIL:
            detail = f"{detail[: _MAX_DETAIL // 2]} ... {detail[-_MAX_DETAIL // 2 :]}"
        super().__init__(detail)
        self.status, self.detail, self.members = status, detail, members

    def answer(self) -> Answer:
        """Return the answer."""
        headers = {}
        if self.status in (429, 503):
            headers["retry-after"] = str(_RETRY_AFTER_S)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status == 405:
            headers["allow"] = self.members["allow"]
        fields = {"type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status}
        content = msgspec.json.encode(fields | {"detail": self.detail} | self.members)
        return Answer(content, self.status, "application/problem+json", headers)


def read_body(body: bytes, kind: type[T]) -> T:
    """Return the body of a request as a value of a type; raises ``Problem`` at the first fault."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        value: Any = None
        if len(body) <= _MAX_REPEATED:
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                value = msgspec.json.decode(body)
        raise _refusal(str(error), kind, value) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not body:
            sentence = f"The body is missing; send an object in JSON, {_fields(kind)}"
        elif "surrogate" in str(error) or _HALF_CHARACTER.search(body):
            sentence = "The body contains half a character (a lone surrogate); send whole characters"
        elif isinstance(error, UnicodeDecodeError):
            sentence = "The body is not UTF-8; send JSON in UTF-8"
        else:
            sentence = (
                f"The body is not valid JSON ({str(error).removeprefix('JSON is malformed: ')}); send JSON in UTF-8"
            )
        raise Problem(422, sentence) from None


#: The first half of a character, written as JSON may write it, without the second one.
_HALF_CHARACTER = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")


def read_query(query: Mapping[str, str], kind: type[T]) -> T:
    """Return query parameters as a value of a type; raises ``Problem``."""
    try:
        return msgspec.convert(query, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), kind, query, is_query=True) from None


#: The messages of msgspec, and what is said for each.
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TYPE = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_BOUND = re.compile(r"Expected `\w+` (>=|<=) ([\d.]+)")
_TYPES = {
    "str": "a text; write it in quotes",
    "array": "a list; write it in square brackets",
    "object": "an object",
    "int": "a whole number; give one, such as 10",
    "float": "a number; give one, such as 10",
    "bool": "true or false",
    "float | str": "a number or a text; give one of them",
    "int | float | str": "a number or a text; give one of them",
}
_GOT = {"null": "null", "array": "a list", "object": "an object", "str": "a text", "bool": "true or false"}


def _refusal(message: str, kind: type[Any], value: Any, *, is_query: bool = False) -> Problem:
    """Return the refusal of a request that does not match its type; ``value`` is the request, or None."""
    message, _, at = message.partition(" - at `")
    steps = [name or int(number) for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", at)]
    for step in steps:
        with suppress(KeyError, IndexError, TypeError):
            value = value[step]
            continue
        value = None
    model, hint = _type_at(kind, steps)
    is_entry = "[...]" in at
    if found := _UNKNOWN.fullmatch(message):
        if is_query:
            names = _join_names(sorted(model.__struct_fields__)) if model else ""
            return Problem(422, f"Query parameter {quoted(found[1])} is not known; this call takes {names or 'none'}")
        steps, sentence = [*steps, found[1]], f"is not known; {_fields(model)}"
    elif found := _MISSING.fullmatch(message):
        steps, sentence = [*steps, found[1]], "is missing; give it"
    elif found := _TYPE.fullmatch(message):
        wanted = found[1].replace(" | null", "")
        rule = _TYPES.get(wanted, wanted) + (f"; {_fields(model)}" if wanted == "object" else "")
        sentence = f"is {_shown(value, found[2])}, and must be {rule}"
    elif found := _LENGTH.match(message):
        sentence = _length_sentence(*found.groups())
    elif found := _BOUND.match(message):
        sentence = f"is {quoted(value)}; give {float(found[2]):g} or {'more' if found[1] == '>=' else 'less'}"
    elif message.startswith("Invalid enum value"):
        choices = " or ".join(map(repr, get_args(hint)))
        sentence = f"is {message.removeprefix('Invalid enum value ')}, which is not known; give {choices}"
    elif "matching regex" in message:
        sentence = f"is {quoted(value)}, which is not a cursor; give the cursor of the previous answer, or none"
    elif "multiple of" in message:
        sentence = f"is {quoted(value)}, and must be {_TYPES['int']}"
    elif message == "Number out of range":
        sentence = "must be a finite number; give one, or leave it out"
    else:
        sentence = "cannot be used; /docs and /openapi.json describe the call"
    location = ascii(".".join(map(str, steps))[:200])[1:-1] or "The body"
    location = f"A value of {location}" if is_entry else f"A name of {location}" if "`key`" in at else location
    # A batch is refused before any of it is judged.
    scope = "; no document of the request was entered" if not is_query and steps[:1] == ["documents"] else ""
    return Problem(422, f"{location} {sentence}{scope}")


def _shown(value: Any, kind: str) -> str:
    """Return a value for a message: as it is if it is short and known, otherwise its kind."""
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str | int | float) else _GOT.get(kind, "a number")


def _length_sentence(kind: str, bound: str, number: str) -> str:
    if bound == ">=":
        return "is empty; give it at least one character"
    unit = "characters; shorten it" if kind == "str" else "entries; give fewer"
    return f"is longer than {int(number):,} {unit}"


def _fields(model: type[msgspec.Struct] | type[Any] | None) -> str:
    if model is None:
        return "/docs lists the calls"
    return f"its fields are {_join_names(sorted(model.__struct_fields__))}"


def _type_at(kind: Any, steps: list[Any]) -> tuple[Any, Any]:
    """Return the innermost record at a path in a type, and the type of its last field."""
    model = hint = _record_in(kind)
    for step in steps:
        if isinstance(step, str) and model is not None:
            hint = get_type_hints(model).get(step)
            model = _record_in(hint) or (model if get_origin(hint) is Literal else None)
    return model, hint


def _record_in(kind: Any) -> Any:
    """Return the first record among a type and its arguments."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next(filter(None, map(_record_in, get_args(kind))), None)


def _join_names(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
