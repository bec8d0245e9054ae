"""Calls while they stream: the listener for `dspy.streamify`, and what it gives."""

from sigadapt.adapters.listeners import CallListener, PartialCall

__all__ = ["CallListener", "PartialCall"]
