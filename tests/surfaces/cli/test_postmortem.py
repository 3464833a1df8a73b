"""``quire postmortem``: everything about a record on one page, and where its files are."""

from __future__ import annotations

import asyncio
from pathlib import Path

from quire.folder.local import LocalFolder
from tests.surfaces.cli.conftest import Project

FLOWS = """
from quire import Act, Retry, Run, Workflow, effect

job = Workflow("job", retry=Retry(1))


@effect
async def put_online(act: Act, text: str) -> str:
    return f"https://example.org/{text}"


@job.step(then="count")
async def post(run: Run) -> None:
    run.data["url"] = await run.once(put_online, "hello|world")


@job.step
async def count(run: Run) -> str:
    prices = {"apple": 3}
    return prices["```pear|*x*"]
"""


async def brief(where: Path) -> None:
    folder = LocalFolder(where)
    await folder.open()
    await folder.artifacts("job").put("a/1", "drafts/brief.md", b"# Brief")
    await folder.close()


def test_the_page_has_the_trace_the_receipts_and_links_to_files_that_are_there(empty: Project, tmp_path: Path) -> None:
    empty.write("flows.py", FLOWS)
    empty.write("quire.toml", 'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\nfolder = "Workflows"\n')
    empty.quire("start", "job", "keyword=quires", "--id", "a/1")
    empty.quire("worker", "--until-idle")

    asyncio.run(brief(tmp_path / "Workflows"))

    page = empty.quire("postmortem", "a/1").stdout
    answer = empty.json("postmortem", "a/1")[0]
    wrote = empty.quire("postmortem", "a/1", "--to", "page.md").stdout
    refused = empty.error("postmortem", "a/1", "--to", "page.md", code=3)

    assert page.startswith("# a/1: ERROR\n") and answer["page"].splitlines()[4:] == page.splitlines()[4:]
    assert 'File "flows.py", line 20, in count' in page and "KeyError" in page
    assert "````\nFile" not in page and "https://example.org/hello\\|world" in page
    assert '"keyword": "quires"' in page and "## What it did" in page
    assert {Path(path).suffix for path in answer["files"]} == {".json", ".md"}
    assert len(answer["files"]) == 4, "state, log, receipt and artifact"
    assert all((tmp_path / "Workflows" / path).exists() for path in answer["files"])
    assert wrote == "wrote page.md\n" and (tmp_path / "page.md").read_text().splitlines()[4:] == page.splitlines()[4:]
    assert "is there already" in refused


def test_a_record_that_has_not_begun_and_one_that_is_not_there(project: Project) -> None:
    project.quire("start", "publish", "keyword=quires", "--id", "new")

    page = project.quire("postmortem", "new").stdout

    assert page.startswith("# new: PENDING") and "## What failed" not in page and "## Evidence" not in page
    assert "other not found" in project.error("postmortem", "other", code=4)
