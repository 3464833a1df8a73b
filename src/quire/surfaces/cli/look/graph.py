"""``quire graph``: a workflow as a picture, with its records."""

from __future__ import annotations

import click

from quire.client.client import Client
from quire.errors import InputError, NotFound
from quire.ledger import engine
from quire.surfaces.cli.command import Session, named, verb
from quire.surfaces.cli.completing import workflows as complete_workflows
from quire.surfaces.cli.keep.writing import check_target, write


@verb(
    "graph",
    example="""
    quire graph seo_publish
    quire graph seo_publish --format svg --to seo_publish.svg
    """,
)
@click.argument("workflow", required=False, default="", callback=named, shell_complete=complete_workflows)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "mermaid", "svg"]), default="terminal", show_default=True
)
@click.option("--to", "target", type=click.Path(dir_okay=False), help="Write it to this file.")
@click.option("--no-counts", is_flag=True, help="Only the machine, without its records.")
def graph(session: Session, workflow: str, form: str, target: str | None, no_counts: bool) -> None:
    """Draw WORKFLOW, or all of them, with the records at each step."""
    from quire.workflows import drawing

    if target is not None:
        check_target(session, target)

    async def work(client: Client) -> None:
        if workflow:
            chosen = [await engine.definition(client.ledger, workflow)]
        else:
            chosen = await engine.definitions(client.ledger)
        if not chosen:
            raise NotFound("no workflow is registered in this ledger; quire up registers those of your flow files")
        if form == "svg" and len(chosen) > 1:
            names = ", ".join(row["name"] for row in chosen)
            raise InputError(f"an SVG shows one workflow; name one of {names}")
        counts = [] if no_counts else await client.counts()
        texts = []
        for definition in chosen:
            mine = {
                (count.step, str(count.status)): count.count for count in counts if count.workflow == definition["name"]
            }
            if session.json:
                rows = [{"step": step, "status": status, "count": count} for (step, status), count in mine.items()]
                session.out.emit({"definition": definition, "counts": rows})
            texts.append(getattr(drawing, form)(definition, mine))
        text = "\n".join(texts)
        if target is not None:
            write(target, text + "\n")
            session.out.say(f"wrote {target}")
        elif not session.json:
            click.echo(text)

    session.with_client(work)
