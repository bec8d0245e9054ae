"""The bases of what signatures hold: frozen models with errors of this package, which JSON can save.

A JSON text keeps the order of an object's keys beside the object, for storage that keeps JSON by value, such
as PostgreSQL's `jsonb`. In another order, a request begins with other bytes than the one before, and the
provider's prompt cache misses.
"""

from typing import TYPE_CHECKING, Any, ClassVar

import jiter
import orjson
import pydantic
from typing_extensions import Self

from sigadapt.errors import InvalidHistory
from sigadapt.json_values import cut, equal_json, without_halves

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(pydantic.BaseModel)

_UNLESS_EMPTY = frozenset(
    ("altered", "repeats", "offered", "before", "searches", "routed", "found", "note", "request_hash")
)


class Immutable:
    """An object that is its own copy."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self


_PACKAGE = __name__.partition(".")[0]
_SAVING = frozenset(("model_dump", "model_dump_json", "model_validate", "model_validate_json"))


class OwnMembers(ModelMetaclass):
    """Let `dir` and `help` of a class show what sigadapt defines: pydantic's members take 400 lines each."""

    def __dir__(self) -> list[str]:
        """Return the names of sigadapt's own members, and of pydantic's those that save and load."""
        own = [vars(base) for base in self.__mro__ if base.__module__.partition(".")[0] == _PACKAGE]
        names = {name for members in own for name in members if not name.startswith("_")}
        return sorted({*names, *_SAVING, "__doc__", "__init__", "__module__"})


BASE_INIT = "__pydantic_base_init__"
"""The mark of a constructor that pydantic does not call to validate what was saved."""

UNHASHABLE: Any = None
"""The `__hash__` of a model whose parts can change, although the model cannot."""


class OwnErrors(pydantic.BaseModel, metaclass=OwnMembers):
    """A frozen model whose constructor raises `InvalidHistory`. Validating it in a field is pydantic's."""

    model_config = pydantic.ConfigDict(frozen=True)

    what_to_give: ClassVar[str | None] = None
    """The `fix` of its errors."""

    def __init__(self, /, *values: object, **data: Any) -> None:
        name = type(self).__name__
        fix = self.what_to_give
        if values:
            reason = f"{name} takes no values by position"
            fix = fix or f"Name them: {', '.join(type(self).model_fields)}."
            raise InvalidHistory(reason, code="unreadable_history", fix=fix)
        try:
            super().__init__(**data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join(map(str, first["loc"]))
            reason = f"{name} cannot be made from it: {path and path + ': '}{cut(first['msg'])}"
            raise InvalidHistory(reason, code="unreadable_history", fix=fix) from error

    vars(__init__)[BASE_INIT] = True


class SaveableModel(OwnErrors):
    """A model whose texts JSON can save: half of a surrogate pair in them is read as U+FFFD."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_halves(cls, data: Any) -> Any:
        return without_halves(data)

    @pydantic.model_serializer(mode="wrap")
    def _save(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value or name not in _UNLESS_EMPTY}


def order_of(value: Any) -> str | None:
    """Return the JSON text of a value that has keys; None for any other value, or one that is not JSON."""
    if value is None or isinstance(value, (str, int, float)):
        return None
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return None


def in_order_of(value: Any, text: object) -> Any:
    """Return a value with its keys in the order of a text of the same value; of any other text, unchanged."""
    # A value that somebody changed in storage is not what the text says any more, and the value counts.
    if not isinstance(text, str):
        return value
    try:
        original = jiter.from_json(text.encode())  # orjson reads an integer over 64 bits as a double
    except ValueError:
        return value
    return original if equal_json(value, original) else value
