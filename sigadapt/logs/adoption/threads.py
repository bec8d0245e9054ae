"""Which requests are one conversation.

 a. A request and its answer with which another one begins are one conversation with it. The log is a tree of
    such beginnings.
 b. Where the tree forks, conversations that began with the same words part, unless a call with a random id is
    in what they share: then somebody asked again in one conversation.
 c. Exchanges that several conversations begin with are shared out among these, so that each has its own.
 d. A request that was trimmed or compacted is of the conversation that has the same call, by a random id; or
    the same turn, where all that both requests hold around it is the same, too. A question may have a summary
    in front of it.
 e. Exchanges with one name of a conversation in the log are one.

Nothing depends on the order of lines.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from sigadapt.logs.adoption.transcript import Transcript, hash_of, identity_of, random_id
from sigadapt.logs.exchanges import LoggedExchange
from sigadapt.schemas.json_values import short_hash

_MOST_OPENINGS = 12  # of the requests with one turn that are compared each with each


class Groups:
    """Groups of names: each in one of its own, until it is joined with another."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def root(self, name: str) -> str:
        """Return the name that stands for the group of a name."""
        parents = self._parents
        while parents.setdefault(name, name) != name:
            parents[name] = parents[parents[name]]  # so that no path gets long
            name = parents[name]
        return name

    def join(self, name: str, other: str) -> None:
        """Make two groups one."""
        first, second = sorted((self.root(name), self.root(other)))  # whatever the order
        self._parents[second] = first


class _BeginningTree:
    """All requests as a tree of what was said: a node is a chain, its children are what came next."""

    def __init__(self, transcripts: Sequence[Transcript]) -> None:
        self.children: dict[str, set[str]] = defaultdict(set)
        self._parents: dict[str, str] = {}
        self._has_id: set[str] = set()  # nodes with a call of a random id in them or before them
        self._roots = {transcript.seed for transcript in transcripts}
        self._terminals: dict[str, list[str]] = {}
        for transcript in transcripts:
            self._add(transcript)
        self._groups = Groups()
        for parent, children in self.children.items():
            if not self._parts(parent):
                for child in children:
                    self._groups.join(parent, child)
        self._forks: dict[str, list[str]] = defaultdict(list)  # what a group parts into
        for parent, children in self.children.items():
            if parent not in self._roots and self._parts(parent):
                self._forks[self._groups.root(parent)] += map(self._groups.root, children)

    def _add(self, transcript: Transcript) -> None:
        positions: set[int] = set()
        for place in transcript.places:
            if any(random_id(call) for call in place.first.calls.in_order()):
                positions.add(place.position)
        parent = transcript.seed
        has_id = False
        for position, step in enumerate(transcript.steps):
            self.children[parent].add(step.chain)
            self._parents[step.chain] = parent
            has_id = has_id or position in positions
            if has_id:
                self._has_id.add(step.chain)
            parent = step.chain

    def _parts(self, node: str) -> bool:
        """Return whether what follows a node are several conversations."""
        if node in self._roots:
            return True
        return len(self.children[node]) > 1 and node not in self._has_id

    def group(self, node: str) -> str:
        """Return the group of a node."""
        return self._groups.root(node)

    def node_of(self, transcript: Transcript) -> str:
        """Return the node that an exchange belongs to: with its answer, if another request has that."""
        if transcript.answer_end in self._parents:
            return transcript.answer_end
        if transcript.steps and self._parts(transcript.end):
            return transcript.answer_end  # nobody continued it: a conversation of its own
        return transcript.end

    def terminals(self, group: str) -> list[str]:
        """Return the conversations that begin with a group; the group itself if it does not part."""
        pending = [group]
        while pending:
            current = pending[-1]
            missing = [fork for fork in self._forks.get(current, ()) if fork not in self._terminals]
            if missing:
                pending += missing
                continue
            pending.pop()
            names: list[str] = []
            for fork in self._forks.get(current, ()):
                names += self._terminals[fork]
            self._terminals[current] = sorted(names) or [current]
        return self._terminals[group]


def conversations_of(exchanges: Sequence[LoggedExchange], transcripts: Sequence[Transcript]) -> list[str]:
    """Return the id of each exchange's conversation: the log's own, or a hash of what was said."""
    tree = _BeginningTree(transcripts)
    groups = Groups()
    occurrences: Counter[str] = Counter()
    names = [""] * len(exchanges)
    order = sorted(range(len(exchanges)), key=lambda n: (exchanges[n].time, transcripts[n].answer_end))
    for number in order:
        node = tree.node_of(transcripts[number])
        terminals = tree.terminals(tree.group(node))
        names[number] = terminals[occurrences[node] % len(terminals)]
        occurrences[node] += 1
    for exchange, name in zip(exchanges, names, strict=True):
        if exchange.name is not None:
            groups.join(name, f"~{exchange.name}")
        for answer_id in exchange.answer_ids:
            groups.join(name, f"~^{answer_id}")
    for first, second in (*_same_calls(exchanges, transcripts, names), *_same_turns(transcripts, names)):
        groups.join(first, second)
    log_names: dict[str, str] = {}
    for exchange, name in zip(exchanges, names, strict=True):
        if exchange.name is not None:
            root = groups.root(name)
            log_names[root] = min(log_names.get(root, exchange.name), exchange.name)
    return [log_names.get(groups.root(name)) or short_hash(groups.root(name)) for name in names]


def _same_calls(
    exchanges: Sequence[LoggedExchange], transcripts: Sequence[Transcript], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the conversations that have a call of one random id."""
    first_names: dict[str, str] = {}
    for exchange, transcript, name in zip(exchanges, transcripts, names, strict=True):
        calls = [call for place in transcript.places for call in place.first.calls.in_order()]
        if exchange.choice.tool_calls:
            calls += exchange.choice.tool_calls.in_order()
        for call in calls:
            if (call_id := random_id(call)) is not None:
                yield first_names.setdefault(f"{call_id} {identity_of(call)}", name), name


def _same_turns(transcripts: Sequence[Transcript], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the conversations of requests that begin differently and have a turn in common."""
    # By a turn, and by what its requests begin with, the longest of these: the others are its beginnings. Of
    # two that are equally long, it is the same one whatever the order.
    turns: dict[str, dict[str, tuple[tuple[int, str], int, int]]] = defaultdict(dict)
    for number, transcript in enumerate(transcripts):
        size = len(transcript.steps), transcript.end
        opening = transcript.steps[0].chain if transcript.steps else ""
        for position, question in _turns(transcript):
            content = transcript.steps[position].content
            requests = turns[hash_of([question, content])]
            if opening not in requests or requests[opening][0] < size:
                requests[opening] = size, number, position
    for requests in turns.values():
        places = [requests[opening] for opening in sorted(requests)]
        for index, (_, number, position) in enumerate(places):
            for _, other, other_position in places[index + 1 : index + _MOST_OPENINGS]:
                if _overlap(transcripts[number], position, transcripts[other], other_position):
                    yield names[number], names[other]


def _turns(transcript: Transcript) -> Iterator[tuple[int, str]]:
    """Yield the positions of what the model did first in each turn, and the turn's question."""
    for place in transcript.places:
        if place.number == 0 and place.question:
            yield place.position, place.question
    yield from transcript.texts


def _overlap(left: Transcript, left_position: int, right: Transcript, right_position: int) -> bool:
    """Return whether all that two requests hold around a common step is the same."""
    i, j = left_position, right_position
    while i < len(left.steps) and j < len(right.steps):
        if left.steps[i].content != right.steps[j].content:
            return False
        i += 1
        j += 1
    i, j = left_position - 1, right_position - 1
    while i >= 0 and j >= 0 and left.steps[i].content == right.steps[j].content:
        i -= 1
        j -= 1
    # The first question of a request that was compacted has a summary in front of it.
    return i < left.opening or j < right.opening
