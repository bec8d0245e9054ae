"""A loopback provider in a process of its own, so that client and server do not share an interpreter."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from sigadapt.testing import WIRES, LoopbackProvider, Script


@contextmanager
def provider(script: Script) -> Iterator[dict[str, dict[str, Any]]]:
    """Run a provider; gives the arguments of dspy.LM for each wire.

    Args:
        script: a function at the top of a module, which the new process imports.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(script, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def _serve(script: Script, pipe: Connection) -> None:
    with LoopbackProvider(script, keep=0) as running:
        pipe.send({wire: running.lm_options(wire) for wire in WIRES})
        pipe.recv()
