"""What tests of adapters share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet_dspy() -> Iterator[None]:
    """DSPy logs each run that it gives up."""
    loggers = [logging.getLogger(name) for name in ("dspy", "dspy.predict.react_v2")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
