"""The table of forms that rows of a log have. A new form is one new file and one row here."""

from sigadapt.errors import InvalidHistory
from sigadapt.logs.forms import batches, examples, langfuse, mlflow, pairs, spans
from sigadapt.logs.forms.form import LogForm, RawExchange
from sigadapt.schemas.json_values import Json, cut

FORMS: tuple[LogForm, ...] = (
    batches.FORM,
    mlflow.FORM,
    spans.FORM,
    langfuse.FORM,
    pairs.PAIRS,
    examples.FORM,
    pairs.BODIES,
)
"""All forms. The first one that knows a row reads it."""


def raw_exchanges(row: Json) -> list[RawExchange]:
    """Return the exchanges, and halves of exchanges, in a row; InvalidHistory says why it has none."""
    for form in FORMS:
        if form.knows(row):
            return [*form.read(row)]
    keys = ", ".join(repr(key) for key in list(row)[:12]) or "no members"
    reason = (
        f"it is of no known form: an object with {cut(keys)}, where a request with its messages is missing"
    )
    raise InvalidHistory(reason, code="unreadable_request")
