"""Refusals of the service as problem details (RFC 9457), and those of requests that do not match their schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel
from starlette.responses import Response

from neardup.errors import quoted

#: Seconds after which a refused caller may try again.
_RETRY_AFTER_S = 1
#: The most characters of the sentence; a value in a longer one loses its middle.
_MAX_DETAIL = 2000


class Problem(Exception):
    """A refusal: an HTTP status, a sentence (the value, the rule, the way out), and further members of the answer."""

    def __init__(self, status: int, detail: str, **members: Any) -> None:
        if len(detail) > _MAX_DETAIL:
            detail = f"{detail[: _MAX_DETAIL // 2]} ... {detail[-_MAX_DETAIL // 2 :]}"
        super().__init__(detail)
        self.status, self.detail, self.members = status, detail, members

    def response(self) -> Response:
        """Return the answer."""
        headers = {}
        if self.status in (429, 503):
            headers["retry-after"] = str(_RETRY_AFTER_S)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        fields = {"type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status}
        content = json.dumps(fields | {"detail": self.detail} | self.members, separators=(",", ":"))
        return Response(content, self.status, headers, "application/problem+json")


_NUMBER = "is {value}, and must be a whole number; give one, such as 10"
_OBJECT = "is {value}, and must be an object; {fields}"
#: The message about a value, by the type of the Pydantic error.
_MESSAGES = {
    "missing": "is missing; give it",
    "extra_forbidden": "is not known; {fields}",
    "string_type": "is {value}, and must be a text; write it in quotes",
    "string_too_short": "is empty; give it at least one character",
    "string_too_long": "is longer than {max_length:,} characters; shorten it",
    "string_unicode": "contains half a character (a lone surrogate); send whole characters",
    "string_pattern_mismatch": "is {value}, which is not a cursor; give the cursor of the previous answer, or none",
    "list_type": "is {value}, and must be a list; write it in square brackets",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "int_parsing_size": _NUMBER,
    "int_from_float": _NUMBER,
    "finite_number": "is {value}, and must be a finite number; give one, or leave it out",
    "bool_type": "is {value}; give true or false",
    "bool_parsing": "is {value}; give true or false",
    "greater_than_equal": "is {value}; give {ge} or more",
    "less_than_equal": "is {value}; give {le} or less",
    "literal_error": "is {value}, which is not known; give {expected}",
}
#: Names that Pydantic appends to the path of a field that takes several types.
_UNION_MEMBERS = {"float", "str", "int", "constrained-str"}


def request_error_message(error: Mapping[str, Any], call: Callable[..., Any]) -> str:
    """Return the message about a request that does not match its schema.

    ``error`` has the form of Pydantic and FastAPI; ``call`` handles the request, and its body is a model of ``bodies``.
    """
    kind, (source, *path) = error["type"], error["loc"]
    if kind == "json_invalid":
        return f"The body is not valid JSON at character {path[0] + 1} ({error['ctx']['error']}); send JSON in UTF-8"
    message = _MESSAGES.get(kind, "cannot be used; /docs and /openapi.json describe the call")
    if len(path) > 1 and path[-1] in _UNION_MEMBERS and kind != "extra_forbidden":
        path.pop()
        if kind != "finite_number":
            message = "is {value}, and must be a number or a text; give one of them"
    if kind == "missing" and not path:
        message = "is missing; send an object in JSON, {fields}"
    values = {"value": _value_text(error.get("input")), "fields": _fields_at(call, path, kind), **error.get("ctx", {})}
    location = ascii(".".join(map(str, path))[:200])[1:-1] or "The body"
    # A batch is refused before any of it is judged.
    scope = "; no document of the request was entered" if source == "body" and path[:1] == ["documents"] else ""
    return f"{location} {message.format_map(values)}{scope}"


def unknown_parameter_message(parameters: Iterable[str], accepted: Iterable[str]) -> str:
    """Return a message about the first unknown query parameter; empty if all are known."""
    names = sorted(accepted)
    for name in parameters:
        if name not in names:
            return f"Query parameter {quoted(name)} is not known; this call takes {_join_names(names) or 'none'}"
    return ""


def _value_text(value: object) -> str:
    """Return a JSON value for a message, without the content of lists and objects."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    names: dict[object, str] = {None: "null", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else quoted(value)


def _fields_at(call: Callable[..., Any], path: list[Any], kind: str) -> str:
    """Return the fields of the object at a path, or of its parent if the last name is unknown."""
    model = _model_in(get_type_hints(call).values())
    for part in path[:-1] if kind == "extra_forbidden" else path:
        if model is not None and isinstance(part, str):
            field = model.model_fields.get(part)
            model = None if field is None else _model_in([field.annotation])
    return "/docs lists the calls" if model is None else f"its fields are {_join_names(sorted(model.model_fields))}"


def _model_in(types: Iterable[Any]) -> type[BaseModel] | None:
    """Return the first model among types and their arguments."""
    for type_ in types:
        if isinstance(type_, type) and issubclass(type_, BaseModel):
            return type_
        if found := _model_in(get_args(type_)):
            return found
    return None


def _join_names(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
