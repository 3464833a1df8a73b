"""The one check of data that comes from outside: does it fit the workflow's model?

Every way in uses it: Python, the command line, CSV files, the API, hooks, sheets, the chat. A process that has the
model's code asks the model. Any other process asks the JSON schema that a worker registered, read as a pydantic
schema: the rules and the sentences are the model's own. Exception: a validator that is written in Python is known only
where the code is.

Fields that the model does not have are refused, with the nearest name that it has, unless the model allows them
(``extra="allow"``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from quire.errors import InputError, did_you_mean
from quire.model.codec import DECIMAL, PLAIN, Codec, dump, first_problem, parse

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Schema = Mapping[str, Any]
_DEFS = "#/$defs/"


class Fit:
    """What one type takes. ``codec``: how its values are read, where this process has the type itself."""

    def __init__(self, schema: Schema | None, fits: str, codec: Codec | None = None, *, unknown: bool = False) -> None:
        self._schema = schema if schema and (codec is None or not codec.plain) else None
        self._codec = codec if codec is not None and not codec.plain else None
        #: What the data has to fit, as the sentence of a refusal names it.
        self._fits = fits
        #: Whether fields that the schema does not name are taken, as JSON Schema itself has it.
        self._takes_unknown = unknown
        self._validator: SchemaValidator | None = None

    def taken(self, value: Any, what: str, *, known: Collection[str] = ()) -> str:
        """The JSON text of the value as the type writes it; refused with the type's sentence if it does not fit.

        ``known``: names of fields that may stand there although the type does not have them (any more).
        """
        text = PLAIN.encode(value, what)
        problem = self.unknown(value, known)
        if problem:
            raise self._refused(what, problem)
        if self._codec is not None:
            copy = self._codec.decode(text, what, self._fits)
            return self._codec.taken(copy, what)[0]
        if self._schema is None:
            return text
        if self._validator is None:
            self._validator = _validator(self._schema)
        try:
            return dump(self._validator.validate_json(_by_name(text, self._schema)))
        except ValueError as error:
            raise self._refused(what, first_problem(error)) from error

    def _refused(self, what: str, problem: str) -> InputError:
        return InputError(f"{what} does not fit {self._fits}: {problem}" if what else problem)

    def unknown(self, value: Any, known: Collection[str] = ()) -> str:
        """The first field that the type does not have, with the nearest that it has; empty: there is none."""
        if self._schema is None or self._takes_unknown:
            return ""
        return next(_strangers(value, self._schema, self._schema, "", known), "")

    @property
    def closed(self) -> frozenset[str]:
        """The names of all fields; empty: others are allowed."""
        schema = self._schema or {}
        if schema.get("type") != "object" or _allows(schema):
            return frozenset()
        return frozenset(schema.get("properties", {})) | frozenset(schema.get("x-aliases", {}))


def needs_value(schema: Schema | None) -> bool:
    """Return whether null does not fit: a value must be given."""
    try:
        Fit(schema, "").taken(None, "")
    except InputError:
        return True
    return False


def as_typed(text: str, schema: Schema | None) -> Any:
    """What a person types as a value: the text itself where the schema takes a text, otherwise JSON if it is any."""
    kinds = {one.get("type") for one in (schema or {}, *(schema or {}).get("anyOf", ()))}
    if "string" in kinds:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _allows(schema: Schema) -> bool:
    """Return whether an object may have fields that are not listed."""
    return bool(schema.get("additionalProperties")) or ("properties" not in schema and "x-aliases" not in schema)


def _by_name(text: str, schema: Schema) -> str:
    """Fields that are written by their other name (``alias``), under the name that the ledger keeps."""
    aliases: Mapping[str, str] = schema.get("x-aliases", {})
    if not aliases:
        return text
    return dump({aliases.get(name, name): value for name, value in parse(text).items()})


# -- fields that the type does not have ------------------------------------------------------------------------


def _strangers(
    value: Any, schema: Schema | None, root: Schema | None, path: str, known: Collection[str] = ()
) -> Iterator[str]:
    if not isinstance(value, dict | list) or not schema:
        return
    alternatives = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if "$ref" in schema:
        yield from _strangers(value, _defined(schema, root), root, path, known)
    elif alternatives:
        found = [list(_strangers(value, one, root, path, known)) for one in alternatives if _may_be(one, value, root)]
        if found and all(found):
            yield from min(found, key=len)
    elif isinstance(value, list):
        items = schema.get("items")
        for place, item in enumerate(value if isinstance(items, dict) else ()):
            yield from _strangers(item, items, root, f"{path}{place}.")
    else:
        yield from _of_object(value, schema, root, path, known)


def _of_object(
    value: dict[str, Any], schema: Schema, root: Schema | None, path: str, known: Collection[str]
) -> Iterator[str]:
    fields: Mapping[str, Any] = schema.get("properties", {})
    rest: Any = schema.get("additionalProperties")
    names = [*fields, *schema.get("x-aliases", ())]
    for name, item in value.items():
        if name in fields:
            yield from _strangers(item, fields[name], root, f"{path}{name}.")
        elif name not in names and name not in known and not _allows(schema):
            yield f"{path}{name}: there is no such field{did_you_mean(name, names)}"
        elif isinstance(rest, dict):
            yield from _strangers(item, rest, root, f"{path}{name}.")


def _defined(schema: Schema, root: Schema | None) -> Schema:
    found: Schema = (root or {}).get("$defs", {}).get(str(schema["$ref"]).removeprefix(_DEFS), {})
    return found


def _may_be(schema: Schema, value: Any, root: Schema | None) -> bool:
    for _ in range(20):  # a reference may name another one
        if "$ref" not in schema:
            break
        schema = _defined(schema, root)
    kind = schema.get("type")
    return kind is None or kind == ("object" if isinstance(value, dict) else "array")


# -- a JSON schema as a pydantic schema ------------------------------------------------------------------------


def _validator(schema: Schema) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator

    whole = _core(schema)
    if definitions := schema.get("$defs"):
        named = [{**_core(one), "ref": f"{_DEFS}{name}"} for name, one in definitions.items()]
        whole = {"type": "definitions", "schema": whole, "definitions": named}
    try:
        return SchemaValidator(whole)
    except SchemaError:  # of a schema that somebody wrote by hand: the worker's own model decides
        return SchemaValidator({"type": "any"})


def _core(schema: Any) -> Any:
    """What of the JSON schema pydantic can check. A keyword that is not known here refuses nothing."""
    if not isinstance(schema, Mapping):
        return {"type": "any"}
    if "$ref" in schema:
        return {"type": "definition-ref", "schema_ref": str(schema["$ref"])}
    words = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(words, list) and words:
        plain = all(isinstance(word, str | int | bool) for word in words)
        return {"type": "literal", "expected": words} if plain else {"type": "any"}
    kind = schema.get("type")
    if isinstance(kind, list):
        return _one_of([{**schema, "type": one} for one in kind])
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return _one_of(alternatives)
    if isinstance(every := schema.get("allOf"), list) and len(every) == 1:
        return _core(every[0])
    read = _KINDS.get(str(kind))
    return read(schema) if read is not None else {"type": "any"}


def _one_of(alternatives: list[Any]) -> Any:
    some = [one for one in alternatives if not (isinstance(one, Mapping) and one.get("type") == "null")]
    decimal = next((one for one in some if isinstance(one, Mapping) and DECIMAL in one), None)
    made = [_core(one) for one in some if decimal is None or not _of_decimal(one)]
    if decimal is not None:
        made.append({"type": "decimal", **_limits(decimal[DECIMAL])})
    if not made:
        return {"type": "none"}
    whole = made[0] if len(made) == 1 else {"type": "union", "choices": made}
    return whole if len(some) == len(alternatives) else {"type": "nullable", "schema": whole}


def _limits(schema_limits: Mapping[str, Any]) -> dict[str, Any]:
    return {word: Decimal(value) if isinstance(value, str) else value for word, value in schema_limits.items()}


def _of_decimal(schema: Any) -> bool:
    """One of the two spellings of a Decimal: a number, or a text."""
    return isinstance(schema, Mapping) and (DECIMAL in schema or schema.get("type") == "string")


_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length"}
_FORMATS = {"date": "date", "date-time": "datetime", "time": "time", "duration": "timedelta", "uuid": "uuid"}


def _numbers(schema: Schema, words: Mapping[str, str]) -> dict[str, Any]:
    return {mine: schema[theirs] for theirs, mine in words.items() if isinstance(schema.get(theirs), int | float)}


def _integer(schema: Schema) -> Any:
    return {"type": "int", **{word: int(value) for word, value in _numbers(schema, _BOUNDS).items()}}


def _number(schema: Schema) -> Any:
    return {"type": "float", "allow_inf_nan": False, **_numbers(schema, _BOUNDS)}


def _string(schema: Schema) -> Any:
    if (kind := _FORMATS.get(str(schema.get("format")))) is not None:
        return {"type": kind}
    pattern = schema.get("pattern")
    # The engine of Rust, which pydantic takes by itself, cannot look around.
    pattern = (
        {}
        if pattern is None
        else {"pattern": pattern, "regex_engine": "python-re" if "(?" in pattern else "rust-regex"}
    )
    return {"type": "str", **_numbers(schema, _LENGTHS), **pattern}


def _array(schema: Schema) -> Any:
    places = schema.get("prefixItems")
    if places and schema.get("minItems") == schema.get("maxItems") == len(places):
        return {"type": "tuple", "items_schema": [_core(one) for one in places]}
    return {"type": "list", "items_schema": _core(schema.get("items")), **_numbers(schema, _LENGTHS)}


def _object(schema: Schema) -> Any:
    rest: Any = schema.get("additionalProperties")
    fields: Mapping[str, Any] = schema.get("properties", {})
    if not fields:
        return {"type": "dict", "values_schema": _core(rest)}
    required = schema.get("required", ())
    read = {
        name: {"type": "typed-dict-field", "schema": _core(one), "required": name in required}
        for name, one in fields.items()
    }
    extra = {"extra_behavior": "forbid"} if rest is False else {"extra_behavior": "allow", "extras_schema": _core(rest)}
    return {"type": "typed-dict", "fields": read, **extra}


_KINDS: dict[str, Callable[[Schema], Any]] = {
    "integer": _integer,
    "number": _number,
    "string": _string,
    "array": _array,
    "object": _object,
    "boolean": lambda _: {"type": "bool"},
    "null": lambda _: {"type": "none"},
}
