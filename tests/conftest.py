"""Settings every test needs before dspy and litellm are imported: nothing leaves this machine."""

import gc
import json
import logging
import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from budgets import WHOLE, share
from hypothesis import HealthCheck, settings

try:
    import fcntl
except ImportError:  # on Windows, where each process makes its own
    fcntl = None

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
os.environ["AWS_REGION_NAME"] = "us-east-1"  # LiteLLM asks for one before it calls Bedrock
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="sigadapt-dspy-cache-")

# No test fails because a machine is slow.
settings.register_profile(
    "patient",
    settings.default,
    deadline=None,
    max_examples=share(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Undo what the command and the scripts of docs/ do to logging for their own process."""
    yield
    logging.disable(logging.NOTSET)
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)


LEVELS: dict[str, int] = {}
"""The levels of the loggers that the command quiets, once they are imported."""


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], Any]], Any]:
    """Make a JSON value of a name once, for all processes that run the tests. The others wait for it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def value_of(name: str, make: Callable[[], Any]) -> Any:
        path = folder / f"{name}.json"
        with path.with_suffix(".lock").open("w") as lock:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(json.dumps(make()), encoding="utf-8")
        return json.loads(path.read_text(encoding="utf-8"))

    return value_of


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep the collector away from a test that recurses to the limit.

    It would run other people's finalizers there, which fail for want of depth.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def closed_streams() -> Iterator[None]:
    """Collect the streams that LiteLLM leaves open, while no lock is held.

    LiteLLM does not close the response of a stream. If the collector comes upon one while httpcore holds the
    lock of its connection pool, closing it waits for that same lock, forever.
    """
    gc.freeze()  # so that only what the test leaves is looked through
    yield
    gc.collect()


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


def skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    """Skip the tests with a marker."""
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what the DSPy that is installed has not; leave out the tests that take longer than this run."""
    import dspy  # noqa: PLC0415  (it reads the settings above)

    if hasattr(dspy.BaseLM, "generate"):
        skip(items, "dspy_3_4", "DSPy 3.5 has it no more")
    if find_spec("litellm") is None:
        skip(items, "litellm", "LiteLLM is not installed")
    longer = [*(["slow"] if "SIGADAPT_FAST" in os.environ else ()), *([] if WHOLE else ["nightly"])]
    left = [item for item in items if any(map(item.get_closest_marker, longer))]
    items[:] = [item for item in items if not any(map(item.get_closest_marker, longer))]
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Skip a test that fails for want of LiteLLM: it is told so, or names what only LiteLLM reaches.

    `test_without_litellm.py` holds that DSPy's own engine does without.
    """
    try:
        return (yield)
    except Exception as error:
        case = getattr(getattr(item, "callspec", None), "id", "")
        is_of_other_engine = "litellm" in case or "ollama" in case or asks_for_litellm(error)
        if find_spec("litellm") is None and is_of_other_engine:
            pytest.skip("LiteLLM is not installed")
        raise


def asks_for_litellm(error: BaseException | None) -> bool:
    """Return whether an error, one in it or the one behind it is that of a missing LiteLLM."""
    if error is None:
        return False
    code = getattr(error, "code", None), getattr(error, "field", None)
    if code == ("missing_extra", "engine") or (isinstance(error, ImportError) and "litellm" in str(error)):
        return True
    inner: list[BaseException] = [*getattr(error, "exceptions", ())]
    return any(map(asks_for_litellm, (*inner, error.__cause__ or error.__context__)))


def pytest_collection_finish() -> None:
    """Leave out of every later collection what is there by now, most of which is modules and lasts."""
    LEVELS.update({name: logging.getLogger(name).level for name in ("dspy", "LiteLLM")})
    gc.collect()
    gc.freeze()
