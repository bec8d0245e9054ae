"""What a page sends beside words: files reach an input, and what nothing takes is named, once."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from chat_pages import agent_of, bank, message, page_of, submit, text_of

import sigadapt
from sigadapt import ToolDecl, ui
from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.testing import Answer, Call

FORMS = ("ai_sdk", "ag_ui")
each_form = pytest.mark.parametrize("form", FORMS)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


class Sees(dspy.Signature):
    """Look at the pictures."""

    question: str = dspy.InputField()
    pictures: list[dspy.Image] = dspy.InputField()
    history: dspy.History = dspy.InputField()
    answer: str = dspy.OutputField()


class SeesOne(dspy.Signature):
    """Look at the picture."""

    question: str = dspy.InputField()
    picture: dspy.Image | None = dspy.InputField(default=None)
    answer: str = dspy.OutputField()


def with_files(form: str, text: str, *files: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A body with a message and files: each a type and bytes."""
    body = message(form, text)
    row = body["messages"][0]
    if form == "ai_sdk":
        row["parts"] += [
            {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{data}"} for kind, data in files
        ]
    else:
        row["content"] = [{"type": "text", "text": text}] + [
            {"type": kind.split("/")[0], "source": {"type": "data", "value": data, "mimeType": kind}}
            for kind, data in files
        ]
    return {**body, **more}


@each_form
@pytest.mark.parametrize("kind", [Sees, SeesOne])
def test_files_reach_their_input_and_stay_on_the_page(form: str, kind: Any, tmp_path: Path) -> None:
    """chats: Files reach their input"""
    field = "pictures" if kind is Sees else "picture"
    with page_of(lambda: dspy.Predict(kind), [text_of("Fine.")] * 2, tmp_path, files=field) as desk:
        desk.post(form, with_files(form, "Look.", ("image/png", PNG)))
        assert desk.sent.count(PNG) == 1
        desk.post(form, with_files(form, "And now?"))
        shown = desk.chats.messages("c1", "ada", form=form)  # pyright: ignore[reportArgumentType]
        assert str(shown).count(PNG) == 1
        assert str(shown[0]).count("image/png") >= 1
        texts = [text for _, text in desk.chats.store.read("c1", "ada")]
        assert str(texts).count(PNG) == 1


def test_the_store_keeps_the_bytes_of_a_file_once_beside_an_agent(tmp_path: Path) -> None:
    """chats: Files reach their input"""

    def look() -> str:
        """Look."""
        return "A cat."

    def agent() -> dspy.Module:
        return sigadapt.ReAct(Sees.delete("history"), tools=[look])

    script = [Answer(calls=[Call("look")]), submit("A cat."), submit("Still a cat.")]
    with page_of(agent, script, tmp_path, files="pictures") as desk:
        desk.post("ai_sdk", with_files("ai_sdk", "Look.", ("image/png", PNG)))
        desk.chats = desk.new_chats(files="pictures")
        desk.post("ai_sdk", with_files("ai_sdk", "And now?"))
        assert PNG in str(desk.provider.received[-1].body)
        texts = [text for _, text in desk.chats.store.read("c1", "ada")]
        assert str(texts).count(PNG) == 1


REFUSED = {
    "a script": ("image/svg+xml", PNG),
    "no type": ("", PNG),
    "no base64": ("image/png", "<script>"),
    "too long": ("image/png", "A" * 10_000_001),
}


@each_form
@pytest.mark.parametrize("file", REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_not_taken_is_refused(form: str, file: tuple[str, str], tmp_path: Path) -> None:
    """chats: Files reach their input"""
    with page_of(lambda: dspy.Predict(Sees), [], tmp_path, files="pictures") as desk:
        with pytest.raises(InvalidOption) as caught:
            desk.post(form, with_files(form, "Look.", file))
        assert caught.value.code == "invalid_body"
        assert "a file of the last message is not taken" in str(caught.value)


def test_links_and_other_kinds_are_refused(tmp_path: Path) -> None:
    """chats: Files reach their input"""
    with page_of(lambda: dspy.Predict(SeesOne), [], tmp_path, files="picture") as desk:
        body = message("ai_sdk", "Look.")
        link = {"type": "file", "mediaType": "image/png", "url": "https://example.invalid/a.png"}
        body["messages"][0]["parts"].append(link)
        with pytest.raises(InvalidOption, match="never as a link"):
            desk.post("ai_sdk", body)
        pictures = [("image/png", PNG)] * 2
        assert "takes one file" in str(desk.post("ai_sdk", with_files("ai_sdk", "Look.", *pictures)))
        sound = ("audio/wav", PNG)
        assert "no file of the type audio/wav" in str(desk.post("ai_sdk", with_files("ai_sdk", "L.", sound)))


@pytest.mark.parametrize("name", ["photos", "question", "answer"])
def test_an_input_that_takes_no_files_is_refused_at_once(name: str, tmp_path: Path) -> None:
    """chats: What cannot serve is refused"""
    with pytest.raises(InvalidOption) as caught:
        ui.Chats(dspy.Predict(Sees), tmp_path / "c.db", files=name)
    assert (caught.value.field, name in str(caught.value)) == ("files", True)


UNREAD: dict[str, dict[str, Any]] = {
    "tools of the page (paint)": {"tools": [{"name": "paint"}]},
    "context": {"context": [{"description": "page", "value": "SECRET"}]},
    "state": {"state": {"cart": "SECRET"}},
    "forwarded properties": {"forwardedProps": {"theme": "SECRET"}},
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_nothing_takes_is_named_once(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """chats: What nothing takes is named"""
    with bank(tmp_path) as desk:
        for _ in range(2):
            desk.post("ag_ui", {**message("ag_ui", "Hello"), **UNREAD[name]})
        assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [name]
        assert "SECRET" not in desk.sent


@each_form
def test_system_messages_and_files_are_named(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """chats: What nothing takes is named"""
    with bank(tmp_path) as desk:
        body = with_files(form, "Hello", ("image/png", PNG))
        body["messages"].insert(0, {"id": "s", "role": "system", "content": "SECRET", "parts": []})
        desk.post(form, body)
        desk.say(form, "Hello again")
        [record] = caplog.records
        assert "a system message" in record.getMessage()
        assert "files=" in record.getMessage()
        assert "SECRET" not in desk.sent
        alone = with_files(form, " ", ("image/png", PNG))
        with pytest.raises(InvalidOption, match="but files alone"):
            desk.post(form, alone)


# Programs that could not serve.


def pay(to: str, eur: int = 75) -> str:
    """Pay somebody."""
    return f"Paid {eur} EUR to {to}."


WAITS = ToolDecl.of(pay, requires_confirmation=True)
OUTSIDE = ToolDecl("ship", "Ship it.", external=True)


class Around(dspy.Module):
    """A program around an agent."""

    def __init__(self, tool: Any) -> None:
        super().__init__()
        self.agent = sigadapt.ReAct("question -> answer", tools=[tool])


class NoHistory(Around):
    def forward(self, question: str) -> Any:
        return self.agent(question=question)


class NeedsQuestion(Around):
    def forward(self, question: str, history: Any = None) -> Any:
        return self.agent(question=question, history=history)


class GoesOn(Around):
    def forward(self, question: str | None = None, history: Any = None) -> Any:
        return self.agent(history=history, **({} if question is None else {"question": question}))


class TakesAll(Around):
    def forward(self, **inputs: Any) -> Any:
        return self.agent(**inputs)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda: NoHistory(WAITS), "it has no input 'history'"),
        (lambda: NoHistory(OUTSIDE), "it has no input 'history'"),
        (lambda: dspy.ReAct("question -> answer", tools=[WAITS]), "it has no input 'history'"),  # pyright: ignore[reportArgumentType]
        (lambda: NeedsQuestion(WAITS), "could not go on without 'question'"),
        (lambda: NoHistory(pay), None),
        (lambda: NeedsQuestion(pay), None),
        (lambda: GoesOn(WAITS), None),
        (lambda: TakesAll(WAITS), None),
        (lambda: sigadapt.ReAct("question -> answer", tools=[WAITS]), None),
        (lambda: dspy.ChainOfThought("question -> answer"), None),
    ],
)
def test_a_program_that_could_not_go_on_is_refused(program: Any, reason: str | None, tmp_path: Path) -> None:
    """chats: A program that could not go on is refused"""

    def make() -> ui.Chats:
        field = None if isinstance(made, dspy.ChainOfThought) else "question"
        return ui.Chats(made, tmp_path / "c.db", field=field)

    made = program()
    if reason is None:
        make()
        return
    with pytest.raises(InvalidOption, match=reason) as caught:
        make()
    assert caught.value.field == "program"


@each_form
@pytest.mark.parametrize("adapter", [None, dspy.ChatAdapter(), dspy.JSONAdapter()])
def test_a_forgotten_adapter_is_told_when_the_body_comes(form: str, adapter: Any, tmp_path: Path) -> None:
    """chats: A forgotten adapter is told when the body comes"""
    chats = ui.Chats(GoesOn(pay), tmp_path / "c.db")
    with dspy.context(adapter=adapter), pytest.raises(SigadaptError) as caught:
        getattr(chats, form)(message(form, "Hello"), "ada")
    assert caught.value.code == "forgotten_adapter"
    assert chats.messages("c1", "ada") == []


SAYING_AGENTS: list[tuple[Any, bool]] = [(dspy.ReActV2, True), (sigadapt.ReAct, False)]


@each_form
@pytest.mark.parametrize(("kind", "submits"), SAYING_AGENTS)
def test_words_of_an_agent_stand_there_once(form: str, kind: Any, submits: bool, tmp_path: Path) -> None:
    """chats: The page shows what was output

    watching-runs: Words of an agent stream as what it answers.
    """
    said = "Hello! How can I help?"
    script = [Answer(text=said), *([submit(said)] if submits else ())]
    with page_of(agent_of(pay, kind=kind), script, tmp_path) as desk:
        rows = desk.say(form, "Hi")
        assert "".join(row.get("delta", "") for row in rows) == said
        assert str(desk.chats.messages("c1", "ada", form=form)).count(said) == 1  # pyright: ignore[reportArgumentType]


@each_form
def test_a_call_that_nobody_is_asked_about_shows_its_defaults(form: str, tmp_path: Path) -> None:
    """chats: Every call is in the chat"""
    with page_of(
        agent_of(pay), [Answer(calls=[Call("pay", {"to": "Ada"})]), submit("Done.")], tmp_path
    ) as desk:
        rows = desk.say(form, "Go")
        for shown in (rows, desk.chats.messages("c1", "ada", form=form)):  # pyright: ignore[reportArgumentType]
            assert "75" in str(shown).replace("Paid 75", "")
