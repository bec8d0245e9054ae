"""What DSPy 3.4 and 3.5 do in different ways, and what sigadapt makes the same of both.

What belongs to the DSPy that isn't installed runs on stand-ins for its names. Another one is tested by
`tasks.py test --dspy X`.
"""

import json
from dataclasses import dataclass
from typing import Any

import dspy
import pytest
from internals import contract, runnable
from pydantic import BaseModel
from tables import table

import sigadapt

lm15 = dspy.lm15
MARKS = contract.TYPE_MARKER, contract.TYPE_MARKER.replace("START", "END")


def marked(*items: Any) -> str:
    return f"{MARKS[0]}{json.dumps(items)}{MARKS[1]}"


# ---- DSPy's types in a text ----

BLOCKS: dict[str, tuple[Any, Any]] = table(__file__, "BLOCKS")


@pytest.mark.parametrize("name", BLOCKS)
def test_what_either_dspy_marked_becomes_a_content_block(name: str) -> None:
    """request-shaping: Values of DSPy's types are sent as either DSPy writes them."""
    written, block = BLOCKS[name]
    row = {"role": "user", "content": f"a{marked(written)}b"}
    expected = [{"type": "text", "text": "a"}, block, {"type": "text", "text": "b"}]
    assert contract.with_blocks(row)["content"] == expected
    in_json = {"role": "user", "content": json.dumps({"items": [marked(written)]})}
    assert contract.with_blocks(in_json)["content"][1] == block


@pytest.mark.parametrize("payload", ["", "{", "7", '{"type": "document", "file_id": "f"}', '"x"'])
def test_what_is_no_list_between_two_marks_stays_text(payload: str) -> None:
    row = {"role": "user", "content": f"{MARKS[0]}{payload}{MARKS[1]}"}
    assert contract.with_blocks(row)["content"] == [{"type": "text", "text": payload}]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under DSPy 3.5."""
    monkeypatch.setattr(contract, "IS_TYPED", True)


class Holder(BaseModel):
    file: dspy.File
    note: str = "n"


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize("around", ["alone", "a list", "a dict", "a model"])
def test_a_file_keeps_its_name_where_dspy_writes_none(around: str) -> None:
    """request-shaping: A file keeps its name under DSPy 3.5."""
    file = dspy.File(file_data="data:text/plain;base64,AAAA", filename="a.txt")
    values = {"alone": file, "a list": [file], "a dict": {"x": file}, "a model": Holder(file=file)}
    kinds: Any = {
        "alone": dspy.File,
        "a list": list[dspy.File],
        "a dict": dict[str, dspy.File],
        "a model": Holder,
    }
    signature: Any = dspy.Signature({"value": (kinds[around], dspy.InputField())})  # pyright: ignore[reportCallIssue]
    value = contract.with_file_names(values[around])
    text = dspy.ChatAdapter().format_user_message_content(signature, {"value": value})
    blocks = contract.with_blocks({"role": "user", "content": text})["content"]
    (found,) = [block for block in blocks if block["type"] == "file"]
    assert found["file"] == {"file_data": "data:text/plain;base64,AAAA", "filename": "a.txt"}


# ---- examples ----


class WritesParts(dspy.ChatAdapter):
    """Writes examples as DSPy 3.5 does: lm15's messages, and parts of everything that is marked."""

    def format_demos(self, signature: Any, demos: list[dict[str, Any]]) -> Any:
        messages: list[Any] = []
        for demo in demos:
            text = self.format_user_message_content(signature, demo)
            if contract.TYPE_MARKER in text:
                messages.append(lm15.Message(role="user", parts=(lm15.DocumentPart(file_id="file-secret"),)))
            else:
                messages.append(lm15.Message.user(text))
            messages.append(lm15.Message.assistant(self.format_assistant_message_content(signature, demo)))
        return messages


@pytest.mark.usefixtures("typed")
def test_a_mark_typed_into_an_example_makes_no_part() -> None:
    """request-shaping: A mark typed into an example is no file of the account."""
    signature: Any = dspy.Signature("question -> answer")  # pyright: ignore[reportCallIssue]
    typed_mark = marked({"type": "document", "file_id": "file-secret"})
    rows = contract.demo_messages(WritesParts(), signature, [{"question": typed_mark, "answer": "So."}])
    assert [row["role"] for row in rows] == ["user", "assistant"]
    assert typed_mark in rows[0]["content"]
    assert "So." in rows[1]["content"]


# ---- prompts, answers and tools ----


@dataclass
class Prompt:
    messages: Any
    system: Any = None


@pytest.mark.usefixtures("typed")
def test_a_users_format_may_return_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """adapter-plug-in: A format of the user's own keeps turns and results."""
    monkeypatch.setattr(dspy.adapters, "Prompt", Prompt, raising=False)
    turn = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]}]
    prompt = contract.prompt_of("Be brief.", [(lm15.Message.assistant("x"), turn)])
    said = lm15.Message(role="user", parts=(lm15.TextPart("a"), lm15.ImagePart(url="https://a.test/a.png")))
    rows = contract.rows_of(Prompt((*prompt.messages, lm15.Message.user("Hi"), said), prompt.system))
    assert rows[:3] == [
        {"role": "system", "content": "Be brief."},
        *turn,
        {"role": "user", "content": "Hi"},
    ]
    assert [block["type"] for block in rows[3]["content"]] == ["text", "image_url"]
    assert contract.rows_of(turn) is turn


def response_of(*parts: Any) -> Any:
    message = lm15.Message(role="assistant", parts=parts)
    return lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=lm15.Usage())


class Thoughts:
    """A native type of DSPy 3.5."""

    @staticmethod
    def parse_lm_response(response: Any) -> str:
        return "".join(part.text for part in response.message.parts_of(lm15.ThinkingPart))


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    ("parts", "thoughts"),
    [((lm15.TextPart("a"),), "ours"), ((lm15.ThinkingPart("theirs"), lm15.TextPart("a")), "theirs")],
)
def test_native_types_read_the_reasoning(parts: Any, thoughts: str) -> None:
    assert contract.native_values({"why": Thoughts}, response_of(*parts), "ours") == {"why": thoughts}


@pytest.mark.parametrize("of_list", [False, True])
def test_an_entry_is_found_by_what_its_call_gave(of_list: bool) -> None:
    response = response_of(lm15.TextPart("a"))
    entry = {"response": response, "outputs": ["a"]}
    assert contract.is_entry_of(entry, [response] if of_list else response)
    assert contract.is_entry_of({"response": (response,), "outputs": []}, [response])
    assert contract.is_entry_of(entry, entry["outputs"])
    assert not contract.is_entry_of(entry, response_of(lm15.TextPart("a")))


@pytest.mark.parametrize("declare", ["format", "format_as_litellm_function_call", "as_function_tool"])
def test_a_tool_that_asks_is_declared_by_no_adapter_of_dspys(declare: str) -> None:
    """adapter-plug-in: A forgotten adapter is refused whatever DSPy declares a tool by."""

    def pay(to: str) -> str:
        return to

    tool: Any = sigadapt.ToolDecl.of(pay, requires_confirmation=True).to_dspy()
    with (
        dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)),
        pytest.raises(sigadapt.errors.InvalidSignature, match="without asking") as raised,
    ):
        getattr(tool, declare)()
    assert raised.value.code == "forgotten_adapter"


@pytest.mark.parametrize("default", ["ChatAdapter", "XMLAdapter"])
def test_the_default_adapter_is_named(default: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """adapter-plug-in: DSPy's default adapter is named."""
    monkeypatch.setattr(runnable, "DEFAULT_ADAPTER", default)

    def pay(to: str) -> str:
        return to

    tool: Any = sigadapt.ToolDecl.of(pay, requires_confirmation=True).to_dspy()
    with (
        dspy.context(adapter=None),
        pytest.raises(sigadapt.errors.InvalidSignature, match=f"DSPy's own {default}") as raised,
    ):
        tool.format()
    assert "sigadapt.ChatAdapter()" in str(raised.value)
    assert ("sigadapt.adapters.XMLAdapter()" in str(raised.value)) == (default == "XMLAdapter")


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


def test_either_name_of_dspys_agent_is_the_agent() -> None:
    """conversations: DSPy's agent is an agent under both of its names."""
    assert {dspy.ReAct, contract.ReActV2} == {*contract.AGENTS}
    assert hasattr(contract.ReActV2, "_make_submit_tool")
    assert issubclass(sigadapt.ReAct, contract.ReActV2)
    assert not contract.keeps_trajectory(sigadapt.ReAct("question -> answer", tools=[]))
    assert contract.keeps_trajectory(dspy.ReAct(Ask, tools=[])) != contract.IS_TYPED
