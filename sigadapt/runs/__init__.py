"""Whole runs of agents and loops: what happened in them, how they wait for a person, and how they go on."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigadapt.runs.waiting_runs import WaitingStore as WaitingStore

__all__ = ["WaitingStore"]

if not TYPE_CHECKING:  # SQLite is imported by who keeps runs

    def __getattr__(name: str) -> Any:
        if name != "WaitingStore":
            raise AttributeError(f"module 'sigadapt.runs' has no attribute {name!r}")
        from sigadapt.runs.waiting_runs import WaitingStore

        return WaitingStore
