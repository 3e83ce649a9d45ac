"""How the service says what is wrong with a request that does not have the form of its call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from neardup.errors import quoted

_NUMBER = "is {value}, and must be a whole number; give one, such as 10"
_OBJECT = "is {value}, and must be an object; {fields}"
#: What is said of a value, by the type of the error as Pydantic names it.
_SAID = {
    "missing": "is missing; give it",
    "extra_forbidden": "is not known; {fields}",
    "string_type": "is {value}, and must be a text; write it in quotes",
    "string_too_short": "is empty; give it a character at least",
    "string_too_long": "is longer than {max_length:,} characters; give it so many at most",
    "string_unicode": "holds half of a character (a lone surrogate); send whole ones",
    "string_pattern_mismatch": "is {value}, which no answer gave; give the cursor of the answer before, or none",
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
#: What Pydantic writes behind the name of a field that takes either.
_EITHER = {"float", "str", "int"}


def sentence_of(error: Mapping[str, Any], call: Callable[..., Any]) -> str:
    """Return what is wrong with a request, as a sentence.

    Parameters
    ----------
    error : mapping
        What Pydantic, or FastAPI in its manner, says.
    call : callable
        The call that was asked for; its body is one of the models of ``bodies``.
    """
    kind, (source, *path) = error["type"], error["loc"]
    if kind == "json_invalid":
        return f"The body is no JSON at character {path[0] + 1} ({error['ctx']['error']}); send JSON in UTF-8"
    said = _SAID.get(kind, "cannot be used; /docs and /openapi.json describe the call")
    if len(path) > 1 and path[-1] in _EITHER and kind != "extra_forbidden":
        path.pop()
        said = said if kind == "finite_number" else "is {value}, and must be a number or a text; give one of them"
    if kind == "missing" and not path:
        said = "is missing; send an object in JSON, {fields}"
    values = {"value": _named(error.get("input")), "fields": _fields_at(call, path, kind), **error.get("ctx", {})}
    where = ascii(".".join(map(str, path))[:200])[1:-1] or "The body"
    # A batch is refused before any of it is judged.
    whole = "; no document of the request was taken" if source == "body" and path[:1] == ["documents"] else ""
    return f"{where} {said.format_map(values)}{whole}"


def check_known(given: Iterable[str], known: Iterable[str]) -> str:
    """Return a sentence on the first query parameter that is not known, empty where all are."""
    names = sorted(known)
    for name in given:
        if name not in names:
            takes = f"this call takes {_listed(names)}" if names else "this call takes none"
            return f"Query parameter {quoted(name)} is not known; {takes}"
    return ""


def _named(value: object) -> str:
    """Return a value of JSON for a sentence; what is nested is not written out."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    names: dict[object, str] = {None: "null", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else quoted(value)


def _fields_at(call: Callable[..., Any], path: list[Any], kind: str) -> str:
    """Return the fields of the object that a path leads to, or that it is in where its last name is not known."""
    model = _model_in(get_type_hints(call).values())
    for part in path[:-1] if kind == "extra_forbidden" else path:
        if model is not None and isinstance(part, str):
            field = model.model_fields.get(part)
            model = None if field is None else _model_in([field.annotation])
    return "/docs lists the calls" if model is None else f"its fields are {_listed(sorted(model.model_fields))}"


def _model_in(types: Iterable[Any]) -> type[BaseModel] | None:
    """Return the first model among types and what they consist of."""
    for one in types:
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
        if found := _model_in(get_args(one)):
            return found
    return None


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
