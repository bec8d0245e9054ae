"""The input of a program that takes a user's files: which types it takes, and whether one or many."""

import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

import dspy

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import cut
from sigadapt.ui.page.page_files import PageFile


class FilesInput:
    """An input `files=` of `Chats`.

    Raises:
        InvalidOption: the program has no such input, or it takes no files.
    """

    def __init__(self, program: dspy.Module, name: str) -> None:
        annotation = _annotation_of(program, name)
        kinds = [*_kinds_in(annotation)]
        if not kinds:
            reason = f"the input {cut(repr(name))} takes no files"
            fix = "Give it the type dspy.Image, dspy.Audio, dspy.File, or a list of one of them."
            raise InvalidOption(reason, field="files", fix=fix)
        self.name = name
        self._kinds = kinds
        self._takes_many = any(get_origin(each) is list for each in (annotation, *get_args(annotation)))

    def flaw_of(self, files: Sequence[PageFile]) -> str | None:
        """Return why these files are not taken; None if they are."""
        if len(files) > 1 and not self._takes_many:
            return f"The input {self.name!r} takes one file, and there are {len(files)}."
        for file in files:
            if self._kind_of(file) is None:
                return f"The input {self.name!r} takes no file of the type {file.media_type}."
        return None

    def inputs(self, files: Sequence[PageFile]) -> dict[str, Any]:
        """Return the input of a run; none for a message without files, if the program takes one alone."""
        values = [self._value(file) for file in files]
        if self._takes_many:
            return {self.name: values}
        return {self.name: values[0]} if values else {}

    def _kind_of(self, file: PageFile) -> type | None:
        family = file.media_type.partition("/")[0]
        wanted = {"image": dspy.Image, "audio": dspy.Audio}.get(family)
        for kind in (wanted, dspy.File):
            if kind in self._kinds:
                return kind
        return None

    def _value(self, file: PageFile) -> Any:
        kind = self._kind_of(file)
        if kind is dspy.Image:
            return dspy.Image(url=file.address)
        if kind is dspy.Audio:
            return dspy.Audio(data=file.data, audio_format=file.media_type.partition("/")[2])
        return dspy.File(file_data=file.address, filename=file.name)


def _annotation_of(program: dspy.Module, name: str) -> Any:
    """Return the type of an input, in the signature of the program or of a module inside of it."""
    for _, module in program.named_sub_modules():
        signature: Any = getattr(module, "signature", None)
        if signature is not None and name in signature.input_fields:
            return signature.input_fields[name].annotation
    reason = f"the program has no input {cut(repr(name))}"
    raise InvalidOption(reason, field="files", fix="Name the input that takes the user's files.")


def _kinds_in(annotation: Any) -> list[type]:
    if annotation in (dspy.Image, dspy.Audio, dspy.File):
        return [annotation]
    if get_origin(annotation) in (list, Union, types.UnionType):
        return [kind for each in get_args(annotation) for kind in _kinds_in(each)]
    return []
