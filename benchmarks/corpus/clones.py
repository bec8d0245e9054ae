"""The public repositories that the recordings come from, and how files of a clone are read.

Files are read out of git at the commit named here, so it does not matter what a clone has checked out. A
bare clone will do.
"""

import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast


class Source(NamedTuple):
    """A public repository at a commit."""

    address: str
    commit: str
    licence: str

    @property
    def repository(self) -> str:
        """Its owner and its name."""
        return "/".join(self.address.split("/")[-2:])

    @property
    def name(self) -> str:
        """The name of its clone's folder."""
        return self.repository.partition("/")[2]

    @property
    def remedy(self) -> str:
        """The command that clones it, but for the folder."""
        return f"git clone --no-checkout {self.address}"


PYDANTIC_AI = Source(
    "https://github.com/pydantic/pydantic-ai",
    "4fda38988f2939fa6ea9cdefcf120693e10ef491",
    "MIT, Copyright Pydantic Services Inc.",
)
GORILLA = Source(
    "https://github.com/ShishirPatil/gorilla",
    "6ea57973c7a6097fd7c5915698c54c17c5b1b6c8",
    "Apache 2.0",
)
BFCL_RESULT = Source(
    "https://github.com/HuanzhiMao/BFCL-Result",
    "b4adfc9be5e0c65e8dbb1340c689688eb92a9379",
    "none stated; the results of gorilla's leaderboard, published by its authors",
)
SOURCES = (PYDANTIC_AI, GORILLA, BFCL_RESULT)


class CloneError(Exception):
    """A clone that is missing, or that lacks the commit."""


class Clone:
    """A local clone of a source."""

    def __init__(self, source: Source, folder: Path) -> None:
        """Find the clone in a folder of clones."""
        self._commit = source.commit
        found = next((path for path in _places(source, folder) if path.is_dir()), None)
        if found is None:
            raise CloneError(f"{source.remedy} {folder / source.name}")
        self._git = ("git", "-C", str(found))
        if self._run("cat-file", "-e", f"{source.commit}^{{commit}}").returncode:
            raise CloneError(f"git -C {found} fetch origin {source.commit}")

    def paths(self) -> list[str]:
        """Return the paths of all files, in git's order."""
        listed = self._run("ls-tree", "-r", "-z", "--name-only", self._commit)
        return listed.stdout.decode().split("\0")[:-1]

    def read(self, path: str) -> bytes:
        """Return one file."""
        for _, content in self.read_all([path]):
            return content
        raise CloneError(f"git -C {self._git[-1]} fetch --refetch --filter=blob:none  # it lacks {path}")

    def read_all(self, paths: Sequence[str]) -> Generator[tuple[str, bytes]]:
        """Yield files with their paths, out of one process of git; without files that the clone lacks."""
        command = (*self._git, "cat-file", "--batch")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as git:
            requests = cast("IO[bytes]", git.stdin)
            answers = cast("IO[bytes]", git.stdout)
            for path in paths:
                requests.write(f"{self._commit}:{path}\n".encode())
                requests.flush()
                header = answers.readline().split()
                if header[-1] == b"missing":
                    continue
                yield path, answers.read(int(header[-1]))
                answers.read(1)  # the line break behind a file

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run((*self._git, *arguments), capture_output=True, check=False)


def remedy(source: Source, folder: Path) -> str | None:
    """Return the command that makes a missing clone, or fetches its missing commit."""
    try:
        Clone(source, folder)
    except CloneError as error:
        return str(error)
    return None


def _places(source: Source, folder: Path) -> list[Path]:
    mirror = source.repository.replace("/", "+")
    return [folder / source.name, folder / f"{source.name}.git", folder / mirror / "repo"]
