"""Files that hold what people said, for their owner alone, whatever the umask and the file's mode before.

A file that another release or a checkout left readable loses that with the first line that is added: what is
added is no less private than what a new file holds. Who wants to share a file gives away a copy.
"""

import os
import stat
from pathlib import Path
from typing import TextIO

_OWNER_ALONE = 0o600
_OTHERS = 0o077


def open_private(path: Path) -> TextIO:
    """Open a file to add text that its owner alone can read."""
    # `Path.open` takes no opener.
    return open(path, "a", encoding="utf-8", newline="\n", opener=_opener)


def _opener(path: str, flags: int) -> int:
    """Open a file for `open`: a new one for its owner alone, another one without the rights of others."""
    descriptor = os.open(path, flags, _OWNER_ALONE)
    if not hasattr(os, "fchmod"):  # Windows before Python 3.13, where a user's files are the user's own
        return descriptor
    state = os.fstat(descriptor)
    # A device such as /dev/null, and a file of somebody else's, are not ours to change.
    is_own = stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid()
    mode = stat.S_IMODE(state.st_mode)
    private_mode = mode & ~_OTHERS | _OWNER_ALONE  # a umask may take the owner's rights, too
    if is_own and mode != private_mode:
        os.fchmod(descriptor, private_mode)
    return descriptor
