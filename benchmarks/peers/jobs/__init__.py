"""Six jobs around a run, written for each library as its documentation recommends, and counted in lines.

Each module has the functions `limited`, `continued`, `side_by_side`, `branches`, `streamed` and `approved`.
"""
