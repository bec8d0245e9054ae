"""A provider's answer, read without an adapter: whole, streamed, or as text."""

from sigadapt.adapters.response.choice import (
    Choice,
    choice_from_response,
    choice_from_stream,
    choices_from_response,
)
from sigadapt.adapters.response.text_choice import choice_from_text
from sigadapt.providers.usage import AnswerUsage
from sigadapt.text.bodies.template import ResponseTemplate

__all__ = [
    "AnswerUsage",
    "Choice",
    "ResponseTemplate",
    "choice_from_response",
    "choice_from_stream",
    "choice_from_text",
    "choices_from_response",
]
