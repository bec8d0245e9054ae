"""Write constraints.txt from what is installed beside this Python; `nox --session pins` runs this."""

import re
from importlib import metadata

from environments import ROOT

OLDEST = 10  # of requires-python, `>=3.10`
HEAD = "# The versions that are tested together; written by `nox --session pins`."
NO_DEPENDENCIES = ("sigadapt", "pip", "setuptools")


def pin(distribution: metadata.Distribution) -> str:
    """Return the line of a package; a version too new for the oldest Python binds only newer ones."""
    name, version = distribution.name, distribution.version.partition("+")[0]
    needs = re.search(r">=\s*3\.(\d+)", str(distribution.metadata.json.get("requires_python")))
    if needs is None or int(needs[1]) <= OLDEST:
        return f"{name}=={version}"
    return f'{name}=={version} ; python_version >= "3.{needs[1]}"'


def main() -> None:
    """Write the file."""
    found = {each.name: pin(each) for each in metadata.distributions()}
    lines = [found[name] for name in sorted(found, key=str.lower) if name not in NO_DEPENDENCIES]
    (ROOT / "constraints.txt").write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
