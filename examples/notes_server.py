"""An MCP server with two tools, for mcp_agent.py: it keeps notes in memory and speaks over stdio."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("notes", log_level="WARNING")
NOTES = {"groceries": "bread, milk", "call": "Ada, 15:00"}


@server.tool()
def list_notes() -> list[str]:
    """List the titles of all notes."""
    return sorted(NOTES)


@server.tool()
def read_note(title: str) -> str:
    """Read a note, by its title."""
    if title not in NOTES:
        raise ToolError(f"there is no note {title!r}")
    return NOTES[title]


if __name__ == "__main__":
    server.run()
