"""A PostgreSQL server for tests: the machine's own, started once in a folder of its own, if it has one."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

URL = "SIGADAPT_POSTGRES"
"""The environment variable with the URL of a server that is there already."""


def _programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None if this machine has none."""
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return folders[-1].parent if folders else None


def lacks() -> str | None:
    """Why no PostgreSQL can be started here; None if one can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if os.environ.get(URL):
        return None
    return None if _programs() is not None else "this machine has no PostgreSQL"


@contextmanager
def postgres() -> Generator[str]:
    """The URL of a database."""
    given = os.environ.get(URL)
    if given:
        yield given
        return
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="sigadapt-postgres-"))
    user: dict[str, str] = {}
    if os.getuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres"}
    data = folder / "data"

    def run(name: str, *options: str) -> None:
        command = (programs / name, *options)
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]  # noqa: S603

    try:
        run("initdb", "-D", str(data), "-U", "sigadapt", "--auth=trust", "--no-sync", "-E", "UTF8")
        server = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-D", str(data), "-w", "-o", server, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql+psycopg://sigadapt@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
