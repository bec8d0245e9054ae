"""Print what MLflow's autolog records of the traced program under both adapters, as JSON.

A script, because autolog changes DSPy for the whole process.
"""

import json
import os
import sys
from typing import Any, cast

# No backend: an address where nobody listens, which is tried once.
os.environ |= {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}

import mlflow
from mlflow.entities.trace_location import MlflowExperimentLocation
from mlflow.tracing.provider import get_bridged_tracer_provider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from traced_program import run


def recorded(which: str) -> list[dict[str, Any]]:
    """Run the program and return its spans, in the order in which they ended."""
    made: Any = mlflow
    made.tracing.set_destination(MlflowExperimentLocation("0"))
    exporter = InMemorySpanExporter()
    get_bridged_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
    made.dspy.autolog()
    run(which)
    return [
        {"name": span.name, "in": part(span, "mlflow.spanInputs"), "out": part(span, "mlflow.spanOutputs")}
        for span in exporter.get_finished_spans()
    ]


def part(span: Any, name: str) -> Any:
    return json.loads(cast("str", span.attributes.get(name, "null")))


if __name__ == "__main__":
    sys.stdout.write(json.dumps({which: recorded(which) for which in ("theirs", "ours")}))
