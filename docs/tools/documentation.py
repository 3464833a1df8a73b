"""Builds the documentation site: ``make docs``. Its environment has mkdocs-material.

MkDocs with the theme Material, because it takes the pages as they are, finds dead links (``--strict``), and brings a
search that needs no service. The pages are copied to build/docs first: the README becomes the first page, and
files outside of docs/ that pages link to (examples, SECURITY.md, …) become pages, so that no link leads nowhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "docs"
#: Pages outside of docs/.
BESIDE = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
NAVIGATION = {
    "Begin": ("quickstart.md", "install.md", "concepts.md", "glossary.md"),
    "Guides": ("guides/",),
    "Write": ("api.md", "reference.md", "missions.md", "assistant.md", "examples/"),
    "Run": (
        *("configuration.md", "cli.md", "errors.md", "operating.md", "deploy.md", "server.md", "chat.md", "alerts.md"),
        *("telemetry.md", "folder.md"),
    ),
    "In a sheet": ("sheets.md", "panel.md", "tables.md", "workspace.md", "workspace/", "acts.md"),
    "Judge": (
        "benchmarks.md",
        "benchmarks-sheets.md",
        "speed.md",
        "comparison.md",
        "transitions.md",
        "orders.md",
        "protocol.md",
        "simulation.md",
    ),
    "Project": ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "decisions/"),
}
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)\s#]+)(#[^)]*)?\)")

CONFIG = """\
site_name: Quire
docs_dir: pages
site_dir: site
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, content.code.copy, search.suggest, search.highlight]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default, toggle: {icon: material/weather-night, name: Dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate, toggle: {icon: material/weather-sunny, name: Light}}
plugins: [search]
markdown_extensions: [tables, fenced_code, toc, pymdownx.superfences, pymdownx.highlight]
validation: {links: {not_found: warn, anchors: warn, unrecognized_links: warn}}
"""


def assembled(to: Path) -> Path:
    """Copy the pages, with links that hold there; return the folder."""
    pages = to / "pages"
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("tools", "__pycache__"))
    for source in sorted((ROOT / "examples").rglob("*")):
        if source.suffix in (".py", ".yaml") and source.name != "__init__.py":
            page = pages / f"{source.relative_to(ROOT)}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            kind = "python" if source.suffix == ".py" else "yaml"
            page.write_text(
                f"# {source.name}\n\n```{kind}\n{source.read_text(encoding='utf-8')}```\n", encoding="utf-8"
            )
    for name in BESIDE:
        shutil.copy(ROOT / name, pages / name)
    shutil.copy(ROOT / "README.md", pages / "index.md")
    for readme in sorted(ROOT.glob("packages/*/README.md")):
        (pages / "packages" / readme.parent.name).mkdir(parents=True)
        shutil.copy(readme, pages / "packages" / readme.parent.name / "README.md")
    shutil.copy(ROOT / "llms.txt", pages / "llms.txt")
    for page in pages.rglob("*.md"):
        page.write_text(_linked(page, pages), encoding="utf-8")
    (to / "mkdocs.yml").write_text(CONFIG + navigation(pages), encoding="utf-8")
    return pages


def _linked(page: Path, pages: Path) -> str:
    """The text of a page, whose links lead to pages of the site."""
    text = page.read_text(encoding="utf-8")
    relative = page.relative_to(pages)
    outside = relative.as_posix() == "index.md" or relative.name in BESIDE or relative.parts[0] == "packages"
    # Where the page stands in the repository: links are relative to that.
    home = (
        ROOT
        if relative.as_posix() == "index.md"
        else ROOT / relative.parent
        if outside
        else ROOT / "docs" / relative.parent
    )

    def link(match: re.Match[str]) -> str:
        target = (home / match[2]).resolve()
        if not target.is_relative_to(ROOT):
            return match[0]
        found = _on_site(target.relative_to(ROOT), pages)
        return f"{match[1]}{_from(relative, found)}{match[3] or ''})" if found else match[0]

    # What is no page (tests, sources) is named without a link.
    elsewhere = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+(?:tests|src|packages/\w+/src)/[^)]*)\)")
    return _LINK.sub(link, elsewhere.sub(r"\1", text))


def _on_site(name: Path, pages: Path) -> str:
    """Where a file of the repository stands on the site; nothing if it is not there."""
    plain = name.as_posix()
    plain = plain.removeprefix("docs/") if plain.startswith("docs/") else "index.md" if plain == "README.md" else plain
    if (pages / plain).is_dir():
        inside = sorted((pages / plain).glob("*.md"))
        return (
            f"{plain}/README.md" if (pages / plain / "README.md").exists() else inside[0].relative_to(pages).as_posix()
        )
    return next((one for one in (plain, f"{plain}.md") if (pages / one).is_file()), "")


def _from(page: Path, target: str) -> str:
    return "../" * (len(page.parts) - 1) + target


def navigation(pages: Path) -> str:
    lines = ["nav:", "  - Quire: index.md"]
    for title, entries in NAVIGATION.items():
        lines.append(f"  - {title}:")
        for entry in entries:
            found = sorted((pages / entry).rglob("*.md")) if entry.endswith("/") else [pages / entry]
            lines += [f"    - {page.relative_to(pages).as_posix()}" for page in found]
    return "\n".join([*lines, "not_in_nav: |", "  /packages/", "  /benchmarks/", ""])


def dead_links(pages: Path) -> list[str]:
    """The links of the assembled pages that lead nowhere."""
    return [
        f"{page.relative_to(pages)}: {target}"
        for page in sorted(pages.rglob("*.md"))
        for _, target, _ in _LINK.findall(
            re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        )
        if not (page.parent / target).exists()
    ]


def main() -> int:
    assembled(PLACE)
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(PLACE / "mkdocs.yml")]
    # The theme announces its successor on every build.
    done = subprocess.run(words, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    if not done.returncode:
        sys.stdout.write(f"built; to read it: python3 -m http.server --directory {PLACE / 'site'}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
