"""What a Toolset is made of, one idea a file: where tools come from and how they are changed.

A change is a plain function `(context, decls) -> sources`: it gets the request's context and the tools so
far, and gives anything that ToolDecls takes, or an awaitable of it.
"""
