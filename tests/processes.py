"""Python programs in processes of their own, forked from one that has already imported DSPy.

To import DSPy takes seconds in a fresh process. A forked one has what a fresh one would have: arguments,
environment, working directory, streams, import path, and a `__main__` of its own. Nothing of sigadapt is
imported in it. What a fork cannot give runs in a fresh process: another hash seed, another setting that DSPy
reads while it is imported, and any program where there is no fork.
"""

import builtins
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

HANGS = 1800.0  # seconds, which no program takes on any machine unless it hangs
FORKS = sys.platform == "linux"
_LENGTH = 8  # bytes that hold the length of a request

Completed = subprocess.CompletedProcess[str]


def run_fresh_python(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> Completed:
    """Run this Python as `run_python` does, in a fresh process."""
    variables = dict(os.environ if env is None else env)
    return _fresh([*map(str, arguments)], "", variables, str(cwd or Path.cwd()))


def run_python(
    *arguments: str | Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    check: bool = False,
) -> Completed:
    """Run this Python, forked, and return what it printed.

    Args:
        arguments: `-c` and code, `-m` and a module, or a script, then its arguments; `-W` may come first.
        stdin: what it reads.
        env: its environment, else that of this process.
        cwd: its working directory, else that of this process.
        check: whether a failure raises.

    Raises:
        subprocess.CalledProcessError: it failed, and `check` is true.
    """
    words = [str(argument) for argument in arguments]
    variables = dict(os.environ if env is None else env)
    folder = str(cwd or Path.cwd())
    if FORKS and _read_early(variables) == _read_early(os.environ):
        done = _forked(words, stdin, variables, folder)
    else:
        done = _fresh(words, stdin, variables, folder)
    if check and done.returncode:
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
    return done


def _read_early(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python and DSPy read before a program begins."""
    early = ("DSPY_", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "HOME")
    return {name: value for name, value in variables.items() if name.startswith(early)}


def _fresh(words: list[str], stdin: str, env: dict[str, str], folder: str) -> Completed:
    """Run a program in a fresh process."""
    return subprocess.run(  # noqa: S603  (our own programs)
        [sys.executable, *words],
        input=stdin, env=env, cwd=folder,
        capture_output=True, text=True, encoding="utf-8", timeout=HANGS, check=False,
    )  # fmt: skip


def _forked(words: list[str], stdin: str, env: dict[str, str], folder: str) -> Completed:
    """Run a program in a process that the forking one makes."""
    request = json.dumps({"words": words, "env": env, "folder": folder}).encode()
    with _file(stdin) as given, _file() as out, _file() as err:
        server = _server()
        files = [given.fileno(), out.fileno(), err.fileno()]
        socket.send_fds(server, [len(request).to_bytes(_LENGTH, "big")], files)
        server.sendall(request)
        status = server.recv(_LENGTH)
        assert status, "the process that forks has ended"
        texts = [_text_of(file) for file in (out, err)]
    code = int.from_bytes(status, "big", signed=True)
    return subprocess.CompletedProcess([sys.executable, *words], code, *texts)


def _file(text: str = "") -> BinaryIO:
    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  (its caller closes it)
    file.write(text.encode())
    file.seek(0)
    return file


def _text_of(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _server() -> socket.socket:
    """Start the process that forks, once for each process of tests. It ends with the socket."""
    ours, theirs = socket.socketpair()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, __file__, str(theirs.fileno())]
    subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)  # noqa: S603
    theirs.close()
    ours.settimeout(HANGS)
    return ours


# In the process that forks, and in its children


def serve(server: socket.socket) -> dict[str, Any]:
    """Fork for each request. Return in the child, with its request."""
    while True:
        head, files, _, _ = socket.recv_fds(server, _LENGTH, 3)
        if not head:
            sys.exit(0)
        body = b""
        length = int.from_bytes(head, "big")
        while len(body) < length:
            body += server.recv(length - len(body))
        child = os.fork()
        if not child:
            for target, file in enumerate(files):
                os.dup2(file, target)
                os.close(file)
            server.close()
            return json.loads(body)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        server.sendall(os.waitstatus_to_exitcode(status).to_bytes(_LENGTH, "big", signed=True))


def run_as_main(words: list[str], env: dict[str, str], base: Sequence[str]) -> None:
    """Run a program as the interpreter does."""
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    encoding, _, errors = env.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = sys.__stdin__ = open(0, encoding=encoding, errors=errors or "strict", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding=encoding, errors=errors or "strict", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False
    )
    while words[0] == "-W":
        warnings.simplefilter(cast("Any", words[1]))
        words = words[2:]
    kind, *rest = words
    first = {"-c": "", "-m": str(Path.cwd())}.get(kind, str(Path(kind).resolve().parent))
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    # An editable install adds the checkout at the end, unless it is there already.
    sys.path[:] = [first, *paths, *(path for path in base if path not in paths)]
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)  # noqa: S102  (our own programs)
        return
    sys.argv = words
    main.__file__ = kind
    exec(compile(Path(kind).read_bytes(), kind, "exec"), main.__dict__)  # noqa: S102


def _main() -> None:
    base = sys.path[1:]  # without the folder of this file
    sys.path[:] = base
    import dspy  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]

    request = serve(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(request["folder"])
    run_as_main(request["words"], request["env"], base)


if __name__ == "__main__":
    _main()
