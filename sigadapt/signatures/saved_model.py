"""The bases of what signatures hold: frozen models with errors of this package, which JSON can save."""

from typing import Any, ClassVar

import pydantic
from typing_extensions import Self

from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import cut, without_halves

_UNLESS_EMPTY = frozenset({"altered", "repeats", "offered", "before", "searches", "routed", "found", "note"})


class Immutable:
    """An object that is its own copy."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self


class OwnErrors(pydantic.BaseModel):
    """A frozen model whose constructor raises `InvalidHistory`. Validating it in a field is pydantic's."""

    model_config = pydantic.ConfigDict(frozen=True)

    what_to_give: ClassVar[str | None] = None
    """The `fix` of its errors."""

    def __init__(self, /, *values: object, **data: Any) -> None:
        if values:
            raise InvalidHistory(
                f"{type(self).__name__} takes no values by position",
                code="unreadable_history",
                fix=self.what_to_give or f"Name them: {', '.join(type(self).model_fields)}.",
            )
        try:
            super().__init__(**data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise InvalidHistory(
                f"{type(self).__name__} cannot be made from it: {place and place + ': '}{cut(first['msg'])}",
                code="unreadable_history",
                fix=self.what_to_give,
            ) from error

    # Without this mark, pydantic would call this constructor to validate what was saved.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]


class Saved(OwnErrors):
    """A model whose texts JSON can save: half of a surrogate pair in them is read as U+FFFD."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_halves(cls, data: Any) -> Any:
        return without_halves(data)

    @pydantic.model_serializer(mode="wrap")
    def _save(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: part for key, part in handler(self).items() if part or key not in _UNLESS_EMPTY}
