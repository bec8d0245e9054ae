"""Tools that the provider runs, and what they leave in an answer: calls, sources and files."""

from sigadapt.signatures.provider_tools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    McpServer,
    WebFetch,
    WebSearch,
)
from sigadapt.signatures.server_work import File, Files, ServerToolCall, Source, Sources

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
