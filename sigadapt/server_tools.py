"""Tools that the provider runs, and what they leave in an answer: calls, sources and files."""

from sigadapt.signatures.server_tools import (
    CodeExecution,
    File,
    Files,
    FileSearch,
    ImageGeneration,
    McpServer,
    ServerToolCall,
    Source,
    Sources,
    WebFetch,
    WebSearch,
)

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
