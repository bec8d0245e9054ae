"""Tools that the provider runs, and what they leave in an answer: calls, sources and files."""

from sigadapt.signatures.server.tools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    McpServer,
    WebFetch,
    WebSearch,
)
from sigadapt.signatures.server.work import File, Files, ServerToolCall, Source, Sources

__all__ = [
    "CodeExecution",
    "File",
    "FileSearch",
    "Files",
    "ImageGeneration",
    "McpServer",
    "ServerToolCall",
    "Source",
    "Sources",
    "WebFetch",
    "WebSearch",
]
