"""A client gets a folder, a contract from a template, a mail with the PDF and a date; each once, whatever is killed.

quire demo onboarding                                               # tried without an account: you play the client
quire up examples/onboarding/flows.py --panel sheets://BOOK_ID      # with your own book, template and account
"""

from datetime import UTC, date, datetime, time
from decimal import Decimal

from pydantic import BaseModel

from quire import Fail, Run, Table, workflow
from quire.workspace import Mail, calendar, docs, drive, gmail

TEMPLATE = "https://docs.google.com/document/d/the-template-of-our-contracts/edit"  # {{company}}, {{fee}}, {{start}}
CLIENTS = "https://drive.google.com/drive/folders/the-folder-of-our-clients"


class Client(BaseModel):
    company: str
    email: str
    fee: Decimal
    start: date
    folder: str | None = None
    contract: str | None = None


@workflow(on=[Table("Clients", status="Task_Status", write_back=["folder", "contract"])], on_failure="undo")
async def onboard(run: Run[Client]) -> str:
    client = run.data
    folder = await run.once(drive.folder, client.company, parent=CLIENTS)
    contract = await run.once(drive.copy, TEMPLATE, f"Contract {client.company}", folder)
    values = {"company": client.company, "fee": f"{client.fee:,.2f} €", "start": client.start}
    await run.once(docs.fill, contract, values)
    pdf = await run.once(drive.pdf, contract, folder)
    client.folder, client.contract = folder.url, pdf.url

    answer = await run.ask(f"Send {client.company} its contract?", show=pdf, choices=["send", "stop"])
    if answer.choice != "send":
        raise Fail(f"stopped: {answer.note}")  # folder, copy and PDF go to the trash

    sent = await run.once(
        gmail.send,
        client.email,
        f"Contract for {client.company}",
        "Please sign it and send it back.",
        attach=[pdf],
        take_back="Please ignore our last mail: the contract in it does not stand.",
    )
    begins = datetime.combine(client.start, time(9), UTC)
    await run.once(calendar.event, f"Kick-off {client.company}", begins, lasts="1h", invite=[client.email], meet=True)
    reply = await run.wait(sent.replied, Mail, timeout="14d")
    return f"answered: {reply.text.strip()}" if reply else "no answer"
