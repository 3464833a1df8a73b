"""Makes llms.txt, the list of pages for programs that read them: ``python docs/tools/llms.py``."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "llms.txt"

#: What comes first, for somebody who writes workflows.
FIRST = ("docs/assistant.md", "docs/api.md", "docs/reference.md", "docs/concepts.md", "docs/cli.md", "docs/errors.md")
#: Pages that only measurements and history are in.
OPTIONAL = re.compile(r"docs/(benchmarks|transitions|orders|decisions/)")


def about(page: Path) -> str:
    """Return the first sentence of a page."""
    text = re.sub(
        r"<!--.*?-->|^```.*?^```|^[#*|].*?$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    paragraph = " ".join(next(part for part in text.split("\n\n") if part.strip()).split())
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph)
    return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")


def line(name: str) -> str:
    page = ROOT / name
    title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return f"- [{title}]({name}): {about(page)}"


def text() -> str:
    pages = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
    pages += [f"docs/guides/{path.name}" for path in sorted((ROOT / "docs" / "guides").glob("*.md"))]
    rest = [name for name in pages if name not in FIRST and not OPTIONAL.match(name)]
    last = [name for name in pages if OPTIONAL.match(name)]
    parts = [
        "# Quire",
        "",
        "> A Python library for workflows that must not lose their place: rows, commits and receipts.",
        "",
        "## To write a workflow",
        "",
        *map(line, FIRST),
        "",
        "## More",
        "",
        *map(line, rest),
        "",
        "## Optional",
        "",
        *map(line, last),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
