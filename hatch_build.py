"""Write a distribution's README: its relative links become addresses, because an index shows it alone."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s]+)")


def absolute(text: str, repository: str) -> str:
    """Return a page whose relative links lead into the repository; pictures lead to their raw file.

    Example:
        >>> absolute("[Start](docs/start.md), ![Flow](flow.svg)", "https://x.test/s")
        '[Start](https://x.test/s/blob/main/docs/start.md), ![Flow](https://x.test/s/raw/main/flow.svg)'
    """
    pictures = re.sub(rf"(!\[[^\]]*){LINK.pattern}", rf"\1\2{repository}/raw/main/\3", text)
    return LINK.sub(rf"\1{repository}/blob/main/\2", pictures)


class ReadmeHook(MetadataHookInterface):
    """Hatchling's hook for what pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README into the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository: str = metadata["urls"]["Repository"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository)}
