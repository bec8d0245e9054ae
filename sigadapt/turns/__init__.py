"""The calls of one turn: what to do with each, how they run, and what an agent's turn has brought so far.

The program runs them, by `ToolCalls.run`, an agent or a resumed run. No adapter does.
"""
