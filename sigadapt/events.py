"""The events of a run, as `sigadapt.stream` yields them, and their union `Event`."""

from sigadapt.runs.events import (
    CallDelta,
    CallReady,
    Confirm,
    Ended,
    Event,
    Failed,
    FileReady,
    Progress,
    ReasoningDelta,
    ResultReady,
    ServerCall,
    SourceReady,
    TextDelta,
    Used,
)

__all__ = [
    "CallDelta",
    "CallReady",
    "Confirm",
    "Ended",
    "Event",
    "Failed",
    "FileReady",
    "Progress",
    "ReasoningDelta",
    "ResultReady",
    "ServerCall",
    "SourceReady",
    "TextDelta",
    "Used",
]
