"""How a prompted answer marks its output fields: `[[ ## calls ## ]]`, `"calls":` or `<calls>`."""

from typing import NamedTuple


class Layout(NamedTuple):
    """The name of the calls field, what marks a field (`{}` is its name), and the names of the others."""

    field: str = ""  # the calls field
    marker: str = ""  # how the text marks an output field
    other_fields: tuple[str, ...] = ()  # the text's other output fields

    @property
    def is_json(self) -> bool:
        """Whether the fields are keys of one object."""
        return self.marker.startswith('"')

    def is_element(self, tag: str) -> bool:
        """Return whether a tag marks an output field, so that it belongs to the text."""
        return self.is_xml and tag.strip("</>") in (self.field, *self.other_fields)

    def has_calls(self, text: str) -> bool:
        """Return whether a text has the mark of the calls field."""
        return self.marker.format(self.field) in text

    @property
    def is_xml(self) -> bool:
        """Whether the fields are elements."""
        return self.marker.startswith("<")


NO_LAYOUT = Layout()
