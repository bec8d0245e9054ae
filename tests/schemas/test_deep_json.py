"""JSON that is nested deeper than a decoder goes."""

import json
from typing import Any, cast

from hypothesis import given
from support import json_values

from sigadapt.schemas.deep_json import without_depths


def depth(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    inner = list(cast("Any", value).values() if isinstance(value, dict) else cast("list[Any]", value))
    return 1 + max(map(depth, inner), default=0)


@given(json_values)
def test_a_value_below_a_level_is_its_own_text(value: Any) -> None:
    text = json.dumps(value)
    for levels in (0, 1, 2):
        cut = json.loads(without_depths(text, levels))
        assert depth(cut) == min(depth(value), levels)
        assert without_depths(text, depth(value)) == text
        assert json.loads(cut) == value if levels == 0 and depth(value) else True


def test_brackets_in_texts_do_not_count() -> None:
    text = json.dumps({"a": '[[[[ "{{' * 3, "b": ["\\", "]"]})
    assert without_depths(text, 2) == text


def test_half_a_text_stays_as_it_is() -> None:
    assert without_depths('[[["a', 1) == '[[["a'
