"""MCP tools pass through as the server wrote them."""

import pytest
from processes import run_python


@pytest.mark.slow
def test_reading_other_sources_imports_no_optional_library():
    code = (
        "import sys\n"
        "from sigadapt.signatures.tool_decls import ToolDecls\n"
        "def f(a: int): ...\n"
        "ToolDecls([f, {'name': 'g'}]).to_openai()\n"
        "print([name for name in ('mcp', 'mcp_types', 'langchain_core') if name in sys.modules])\n"
    )
    done = run_python("-c", code, check=True)
    assert done.stdout.strip() == "[]"
