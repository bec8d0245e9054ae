"""What was said in a recorded request, as hashes: two requests that begin alike have the same first ones.

Text beside calls is not compared, because clients drop it. Neither are call ids that a server counts: only an
id with enough random characters says which conversation a call is of.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from sigadapt.adapters.response.choice import Choice
from sigadapt.logs.conversation import Conversation
from sigadapt.schemas.json_values import Json, compact, is_array
from sigadapt.signatures.calls import InvalidToolCall, ToolCall
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round
from sigadapt.signatures.tool_results.tool_result import ToolResult

Rounds: TypeAlias = tuple[Round, ...]
AnyCall: TypeAlias = ToolCall | InvalidToolCall

_SHORTEST_ANSWER = 40  # characters of a text that is hardly said twice
_RANDOM_RUN = re.compile(r"[0-9A-Za-z]{8,}")


class TranscriptStep(NamedTuple):
    """One thing that was said, by the hash of it alone, and of it and all before it."""

    content: str
    chain: str


class RoundPlace(NamedTuple):
    """A round of calls with results, in its turn and in its request."""

    rounds: Rounds  # of its turn
    number: int  # of the round in its turn
    position: int  # of the step of its calls
    question: str  # the last paragraph of the turn's question; empty without one

    @property
    def length(self) -> int:
        """How many rounds the turn has from this one on."""
        return len(self.rounds) - self.number

    @property
    def first(self) -> Round:
        """The round."""
        return self.rounds[self.number]


class Transcript(NamedTuple):
    """The steps of a request, those of its answer after them, and where its rounds are."""

    seed: str  # the chain before the first step
    steps: list[TranscriptStep]
    answer_steps: list[TranscriptStep]
    places: list[RoundPlace]
    texts: list[tuple[int, str]]  # the positions of long answers in words, and the questions before them
    question: str  # the last paragraph of the question of the turn under way
    round_count: int  # of the turn under way
    opening: int  # how many steps the first question has

    @property
    def end(self) -> str:
        """The hash of the whole request."""
        return self.steps[-1].chain if self.steps else self.seed

    @property
    def answer_end(self) -> str:
        """The hash of the request and its answer."""
        return self.answer_steps[-1].chain if self.answer_steps else self.end


def transcript_of(conversation: Conversation, choice: Choice, name: str | None) -> Transcript:
    """Return what was said in a request and in its answer. Conversations of two names share no hash."""
    seed = f"~{name}" if name else ""
    steps: list[TranscriptStep] = []
    places: list[RoundPlace] = []
    texts: list[tuple[int, str]] = []
    under_way: Json = {"question": conversation.question, "results": conversation.results}
    question = ""
    for event in (*conversation.history.messages, under_way):
        paragraphs = [*_paragraphs(event.get("question"))]
        question = paragraphs[-1] if paragraphs else ""
        for paragraph in paragraphs:
            _add(steps, seed, ["question", paragraph])
        results = event.get("results")
        rounds: Rounds = () if results is None else results.rounds
        for number, turn in enumerate(rounds):
            places.append(RoundPlace(rounds, number, len(steps), question))
            _add(steps, seed, _calls_content(turn.calls.in_order()))
            _add(steps, seed, ["results", [[result.value, result.is_error] for result in turn.results]])
        if event.get("calls"):
            _add(steps, seed, _calls_content(event["calls"].in_order()))
        answer = [*_paragraphs(event.get("answer"))]
        if sum(map(len, answer)) >= _SHORTEST_ANSWER and question:
            texts.append((len(steps), question))
        for paragraph in answer:
            _add(steps, seed, ["answer", paragraph])
    answer_steps = [*steps[-1:]]
    if choice.tool_calls:
        _add(answer_steps, seed, _calls_content(choice.tool_calls.in_order()))
    else:
        for paragraph in _paragraphs(choice.text):
            _add(answer_steps, seed, ["answer", paragraph])
    contents = {hash_of(["question", paragraph]) for paragraph in _first_question(conversation)}
    opening = 0
    while opening < len(steps) and steps[opening].content in contents:
        opening += 1
    return Transcript(
        seed=seed,
        steps=steps,
        answer_steps=answer_steps[1:] if steps else answer_steps,
        places=places,
        texts=texts,
        question=question,
        round_count=0 if conversation.results is None else len(conversation.results.rounds),
        opening=opening,
    )


def _first_question(conversation: Conversation) -> Iterator[str]:
    events = conversation.history.messages
    yield from _paragraphs(events[0].get("question") if events else conversation.question)


def _add(steps: list[TranscriptStep], seed: str, content: Any) -> None:
    """Add a step to those before it."""
    own_hash = hash_of(content)
    before = steps[-1].chain if steps else seed
    steps.append(TranscriptStep(own_hash, hash_of([before, own_hash])))


def hash_of(content: Any) -> str:
    """Return a hash of JSON."""
    return hashlib.sha256(compact(content).encode("utf-8", "replace")).hexdigest()


def _paragraphs(content: Any) -> Iterator[str]:
    """Yield the paragraphs of a text, or of the texts among parts, each other part as its JSON."""
    # Each is a step of its own, because what a user says twice in a row is one question.
    if is_array(content):
        for part in content:
            if part.get("type") == "text":
                yield from _paragraphs(part.get("text"))
            else:
                yield compact(part)
    elif content:
        for paragraph in str(content).split("\n\n"):
            if paragraph.strip():
                yield " ".join(paragraph.split())


def _calls_content(calls: list[AnyCall]) -> Any:
    """Return what two equal turns of calls have in common."""
    return ["calls", [[identity_of(call), random_id(call)] for call in calls]]


def identity_of(call: AnyCall) -> str:
    """Return what two equal calls have in common, whatever their ids."""
    arguments = call.args if isinstance(call, ToolCall) else call.arguments
    # Some providers sort the members of arguments.
    return json.dumps([call.name, arguments], sort_keys=True, default=str)


def random_id(call: AnyCall) -> str | None:
    """Return the id of a call if no other call can have it by chance; None for one that a server counts."""
    runs = _RANDOM_RUN.findall(call.id.replace(call.name or "", ""))
    return call.id if any(map(_is_no_word, runs)) else None


def _is_no_word(run: str) -> bool:
    """Return whether a run of letters and digits has both, or letters of both cases."""
    has_digit = any(char.isdigit() for char in run)
    return (has_digit and not run.isdigit()) or (run != run.lower() and run != run.upper())


def has_result(call: AnyCall, result: ToolResult) -> bool:
    """Return whether a call got a result, not one that stands in for a lost one."""
    return result != unanswered(call)
