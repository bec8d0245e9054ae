"""Print the traces that MLflow's autologs write of calls by the SDKs of three providers, and by DSPy.

A script, because autolog changes the SDKs for the whole process.
"""

import os
import sys
from typing import Any

# No backend: an address where nobody listens, which is tried once.
os.environ |= {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}

import anthropic
import dspy
import mlflow
import openai
from google import genai
from mlflow.entities.trace_location import MlflowExperimentLocation
from mlflow.tracing.export.mlflow_v3 import MlflowV3SpanExporter

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: dict[str, Any] = {"name": "get_weather", "description": "Weather of a city.", "parameters": SCHEMA}
QUESTION: list[Any] = [{"role": "user", "content": "Weather in Lima?"}]


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    calls: sigadapt.ToolCalls = dspy.OutputField()


def write(_: Any, trace: Any, **__: Any) -> None:
    sys.stdout.write(f"{trace.to_json()}\n")


def main() -> None:
    made: Any = mlflow
    made.tracing.set_destination(MlflowExperimentLocation("0"))
    MlflowV3SpanExporter._log_trace = write  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    for library in (made.openai, made.anthropic, made.gemini, made.dspy):
        library.autolog()
    with LoopbackProvider([Answer(calls=[Call("get_weather", {"city": "Lima"})])]) as net:
        options: Any = net.lm_options("openai")
        root = options["api_base"].removesuffix("/v1")
        chat: Any = openai.OpenAI(base_url=options["api_base"], api_key="k")
        chat.chat.completions.create(
            model="m", messages=QUESTION, tools=[{"type": "function", "function": TOOL}], temperature=0.5
        )
        chat.responses.create(
            model="m", input="Weather in Lima?", instructions="Help.", tools=[{"type": "function", **TOOL}]
        )
        claude: Any = anthropic.Anthropic(base_url=root, api_key="k")
        entry = {"name": "get_weather", "description": "Weather of a city.", "input_schema": SCHEMA}
        claude.messages.create(model="m", max_tokens=99, messages=QUESTION, tools=[entry])
        google: Any = genai.Client(api_key="k", http_options={"base_url": root})
        declaration = {"name": "get_weather", "description": "W.", "parameters_json_schema": SCHEMA}
        config = {"system_instruction": "Help.", "tools": [{"function_declarations": [declaration]}]}
        google.models.generate_content(model="gemini-2.5-flash", contents="Weather in Lima?", config=config)
        with dspy.context(lm=dspy.LM(**options), adapter=sigadapt.ChatAdapter()):
            dspy.Predict(Ask)(question="Weather in Lima?", tools=[TOOL])


if __name__ == "__main__":
    main()
