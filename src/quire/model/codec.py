"""Values to JSON text and back, and the refusal of those that would not come back the same.

What crosses the ledger goes through here, and the decoded copy is what a first pass gets too: what does not survive
the round trip fails on the first day, not after the first crash.
"""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from quire.errors import ValueRefused, in_words

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

#: The largest value that is taken at all: beyond it a mistake is likelier than a need.
MOST_BYTES = 256 * 1024 * 1024

#: The key of a schema under which a Decimal keeps its limits, and the names of these.
DECIMAL = "x-decimal"
_LIMITS = ("ge", "gt", "le", "lt", "multiple_of", "max_digits", "decimal_places")

_BARE = frozenset({str, int, bool, type(None)})
_NOT_A_NUMBER = re.compile(r"NaN|Infinity")
_CLASS = re.compile(r"<class '([^']+)'>")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def dump(value: Any) -> str:
    """Plain JSON text of a value that Quire made itself: no checks."""
    return _to_json(value).decode()


def parse(text: str) -> Any:
    """Return the plain value of a JSON text that Quire wrote itself."""
    return _from_json(text)


def readable(text: str) -> str:
    """Return a text for people; what no store keeps of it (NUL, half of a character) is written as its number."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _to_json(value: Any) -> bytes:
    global _to_json
    from pydantic_core import to_json

    _to_json = to_json
    return to_json(value)


def _from_json(text: str) -> Any:
    global _from_json
    from pydantic_core import from_json

    _from_json = from_json  # type: ignore[assignment]  # it takes more than we give it
    return from_json(text)


def _refused(value: object, what: str, why: str) -> ValueRefused:
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - its own __repr__ may raise anything
        shown = f"a {type(value).__name__}"
    return ValueRefused(f"{what} cannot be kept: {why} (it is {shown[:120]}{'…' if len(shown) > 120 else ''})")


class Codec:
    """To text and back for values of one type. ``Codec(Any)`` takes plain JSON values only."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self.plain = type_ is Any or type_ is None or type_ is dict or type_ == dict[str, Any]
        self._adapter: TypeAdapter[Any] | None = None
        self._schema: dict[str, Any] | None = None

    @property
    def adapter(self) -> TypeAdapter[Any]:
        if self._adapter is None:
            from pydantic import ConfigDict, TypeAdapter
            from pydantic.errors import PydanticUserError

            config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
            try:
                self._adapter = TypeAdapter(self.type, config=config)
            except PydanticUserError:  # a model brings its own configuration
                self._adapter = TypeAdapter(self.type)
        return self._adapter

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the type, with the defaults of its fields that are made when they are missing."""
        if self._schema is None:
            by_name = _takes_names(self.type)
            self._schema = self.adapter.json_schema(by_alias=not by_name, schema_generator=_generator())
            if by_name and (aliases := _aliases(self.type)):
                self._schema["x-aliases"] = aliases
            fields = self._schema.get("properties", {})
            for name, made in _made_defaults(self.type).items():
                if name in fields and "default" not in fields[name]:
                    fields[name]["default"] = made
        return self._schema

    def check(self) -> None:
        """Raise what the type raises if it is none of which values can be written and read."""
        if isinstance(self.type, str):
            raise TypeError(f"{self.type!r} is the name of a type")
        if not self.plain and self.type not in tuple(_BARE):
            _ = self.adapter

    def _bare(self, value: Any) -> bool:
        """A value that JSON knows by itself, where no type makes anything else of it: it comes back as it is."""
        kind = type(value)
        return kind in _BARE and (self.plain or self.type is kind)

    def encode(self, value: Any, what: str) -> str:
        """Return the JSON text of ``value``; refused with a sentence that names ``what`` if it cannot be kept."""
        try:
            if self.plain or self._bare(value):
                text = _to_json(value).decode()
            else:
                text = self.adapter.dump_json(value, warnings="error").decode()
        except ValueError as error:
            if "surrogates not allowed" in str(error):
                raise _refused(value, what, "it holds a lone surrogate, which is not text") from None
            if problem := self._problem(value):
                raise _refused(value, what, f"it is declared as {_name(self.type)}, but: {problem}") from error
            found = _CLASS.search(str(error))
            kind = found[1].rpartition(".")[2] if found else type(value).__name__
            raise _refused(value, what, f"{kind} is not JSON; annotate it with a type, or convert it first") from error
        except Exception as error:  # a type's own code may raise anything
            raise _refused(value, what, f"writing it raised {in_words(error)}") from error
        self._check_text(value, text, what)
        return text

    def nearest(self, value: Any, what: str) -> tuple[str, Any]:
        """The same for what cannot be had again: also a value that only resembles the type, as a kind of text does.

        The copy is what the type makes of it: a ``str`` of a subclass is a ``str``.
        """
        try:
            return self.taken(value, what)
        except ValueRefused as refused:
            if self.plain:
                text = PLAIN.encode(_plain(value), what)
                return text, self.decode(text, what)
            try:
                # What another class inherits from the type is left aside; what is of another type is refused.
                near = self.adapter.validate_python(_plain(value))
            except ValueError:
                raise refused from None
            text = self.encode(near, what)
            return text, self.decode(text, what)

    def _problem(self, value: Any) -> str:
        """Return why the value is none of the type; empty: it is one, or nobody can tell."""
        if self.plain:
            return ""
        try:
            self.adapter.validate_python(value, strict=True)
        except ValueError as error:
            return first_problem(error)
        except Exception:  # noqa: BLE001 - a type's own code may raise anything
            return ""
        return ""

    def decode(self, text: str, what: str, fits: str = "") -> Any:
        """Return a fresh value of the type from its JSON text. ``fits``: what a refusal calls the type."""
        if self.plain:
            return _from_json(text)
        try:
            return self.adapter.validate_json(text)
        except ValueError as error:
            raise ValueRefused(f"{what} does not fit {fits or _name(self.type)}: {first_problem(error)}") from error
        except Exception as error:  # a type's own code may raise anything
            problem = f"reading it raised {in_words(error)}"
            raise ValueRefused(f"{what} does not fit {fits or _name(self.type)}: {problem}") from error

    def taken(self, value: Any, what: str) -> tuple[str, Any]:
        """Return the text of ``value`` and its decoded copy, refused unless the copy equals what was given."""
        if self._bare(value):
            text = _to_json(value).decode() if type(value) is not str else self.encode(value, what)
            return text, value
        text = self.encode(value, what)
        copy = self.decode(text, what)
        try:
            same = _same(value, copy)
        except Exception as error:  # a type's own comparison may raise anything
            raise _refused(value, what, f"comparing it with what comes back raised {in_words(error)}") from error
        if not same:
            raise _refused(
                value, what, f"it does not survive the round trip, it comes back as {copy!r:.120}; annotate its type"
            )
        return text, copy

    @staticmethod
    def _check_text(value: Any, text: str, what: str) -> None:
        if len(text) > MOST_BYTES:
            raise ValueRefused(f"{what} cannot be kept: it has {len(text):,} characters, more than {MOST_BYTES:,}")
        # Without the backslashes that are themselves escaped, what is left of this spelling is a NUL.
        if "\\u0000" in text and "\\u0000" in text.replace("\\\\", ""):
            raise _refused(value, what, "it holds a NUL character, which no store keeps")
        if ("NaN" in text or "Infinity" in text) and _NOT_A_NUMBER.search(_STRING.sub("", text)):
            raise _refused(value, what, "NaN and Infinity are not JSON")


def _plain(value: Any) -> Any:
    """The value without what its class adds to a text, a number, a list or a dict."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "_fields"):
        kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
        return kind(map(_plain, value))
    if isinstance(value, Enum):
        return value
    return str(value) if isinstance(value, str) else bytes(value) if isinstance(value, bytes) else value


def schema_of(codec: Codec) -> dict[str, Any] | None:
    """Return the JSON schema of a type, ``{}`` where any value fits; None: the type has no schema."""
    if codec.plain:
        return {}
    try:
        return codec.schema
    except Exception:  # noqa: BLE001 - pydantic and the type's own code may raise anything
        return None


def _same(value: Any, copy: Any) -> bool:
    if type(value) is not type(copy) and not (isinstance(value, int | float) and isinstance(copy, int | float)):
        return False
    if isinstance(value, dict):
        return len(value) == len(copy) and all(k in copy and _same(v, copy[k]) for k, v in value.items())
    if isinstance(value, list | tuple):
        return len(value) == len(copy) and all(map(_same, value, copy))
    if dataclasses.is_dataclass(value) and type(value).__eq__ is object.__eq__:
        return True  # a dataclass with eq=False cannot be compared; its adapter has read it back
    return bool(value == copy)


def _made_defaults(type_: Any) -> dict[str, Any]:
    """What the fields of a model or dataclass are if they are made empty when they are missing."""
    makers: dict[str, Any] = {}
    if dataclasses.is_dataclass(type_):
        makers = {field.name: field.default_factory for field in dataclasses.fields(type_)}
    elif hasattr(type_, "model_fields"):
        makers = {field.alias or name: field.default_factory for name, field in type_.model_fields.items()}
    found = {}
    for name, maker in makers.items():
        if maker in (list, dict, set, tuple):
            found[name] = parse(dump(maker()))
    return found


def _generator() -> type[GenerateJsonSchema]:
    """Schemas of pydantic, in which a Decimal keeps its limits: a JSON schema calls it a number or any text."""
    global _Generator
    if _Generator is None:
        from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

        class Generator(GenerateJsonSchema):
            def decimal_schema(self, schema: Any) -> JsonSchemaValue:
                made = super().decimal_schema(schema)
                limits = {word: schema[word] for word in _LIMITS if schema.get(word) is not None}
                for one in made.get("anyOf", (made,)):
                    if one.get("type") == "number":
                        one[DECIMAL] = {
                            word: value if isinstance(value, int) else str(value) for word, value in limits.items()
                        }
                return made

        _Generator = Generator
    return _Generator


_Generator: type[GenerateJsonSchema] | None = None


def _takes_names(type_: Any) -> bool:
    """Whether a model whose fields have aliases reads them under their own names, too: so the ledger keeps them."""
    config: Any = getattr(type_, "model_config", None) or getattr(type_, "__pydantic_config__", None) or {}
    return bool(config.get("populate_by_name") or config.get("validate_by_name"))


def _aliases(type_: Any) -> dict[str, str]:
    found = getattr(type_, "model_fields", {}).items()
    return {field.alias: name for name, field in found if field.alias is not None and field.alias != name}


def _name(type_: Any) -> str:
    return getattr(type_, "__name__", None) or str(type_)


def first_problem(error: Any) -> str:
    """Return the first sentence of a validator's error, with the field that it is about."""
    if not hasattr(error, "errors"):
        return in_words(error)  # of a validator that is not pydantic's
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    more = len(error.errors()) - 1
    return f"{where + ': ' if where else ''}{first['msg']}" + (f" (and {more} more)" if more else "")


@lru_cache(maxsize=4096)
def _cached(type_: Any) -> Codec:
    return Codec(type_)


def codec(type_: Any) -> Codec:
    """Return the codec of a type, made once per type."""
    try:
        return _cached(type_)
    except TypeError:  # an unhashable annotation
        return Codec(type_)


PLAIN = Codec(Any)
