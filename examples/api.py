"""The examples of the API, one after the other: what users write. The tests run them and check their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from quire import Act, Client, Cron, Fail, Failed, Inbox, NotDone, Retry, Run, SyncRun, Workflow, effect, workflow


class Google(Protocol):
    async def new_id(self) -> str: ...
    async def create_folder(self, name: str, *, file_id: str) -> str: ...
    async def copy(self, template: str, parent: str, *, key: str) -> str: ...
    async def find(self, *, key: str) -> str | None: ...
    async def trash(self, file_id: str) -> None: ...
    async def fill(self, doc: str, values: dict[str, str]) -> None: ...
    async def pdf(self, doc: str) -> bytes: ...
    async def send(self, to: str, pdf: bytes, *, message_id: str) -> None: ...
    async def sent(self, message_id: str) -> bool: ...
    async def put_row(self, tab: str, key: str, row: list[str]) -> None: ...


class Cms(Protocol):
    async def publish(self, text: str, *, idempotency_key: str) -> str: ...
    async def find(self, key: str) -> str | None: ...
    async def unpublish(self, url: str) -> None: ...


@dataclass
class Deps:
    google: Google
    cms: Cms


# (a) onboarding, imperative, with compensation


class Customer(BaseModel):
    name: str
    email: str


async def trash(act: Act[Deps], file_id: str) -> None:
    await act.deps.google.trash(file_id)


@effect(repeat=True, undo=trash)  # in doubt act again: Drive answers 409 to a known id
async def make_folder(act: Act[Deps], name: str, file_id: str) -> str:
    return await act.deps.google.create_folder(name, file_id=file_id)


async def find_copy(act: Act[Deps], template: str, folder: str) -> str | NotDone:
    return await act.deps.google.find(key=act.key) or NotDone()


@effect(probe=find_copy, undo=trash)
async def copy_template(act: Act[Deps], template: str, folder: str) -> str:
    return await act.deps.google.copy(template, folder, key=act.key)


async def was_sent(act: Act[Deps], to: str, doc: str) -> NotDone | None:
    return None if await act.deps.google.sent(act.key) else NotDone()


@effect(probe=was_sent)
async def mail_pdf(act: Act[Deps], to: str, doc: str) -> None:
    await act.deps.google.send(to, await act.deps.google.pdf(doc), message_id=act.key)


@workflow(retry=Retry(attempts=5))
async def onboard(run: Run[Customer, Deps]) -> str:
    google, customer = run.deps.google, run.data
    folder = await run.once(make_folder, customer.name, await run.call(google.new_id))
    doc = await run.once(copy_template, "tmpl_1", folder)
    await run.call(google.fill, doc, {"{{name}}": customer.name})  # may be repeated
    await run.once(mail_pdf, customer.email, doc)
    await run.call(google.put_row, "Clients", run.record_id, [customer.name, doc])
    return doc


# (b) publishing, as a declared machine


class Article(BaseModel):
    keyword: str
    draft: str = ""
    url: str = ""


async def find_post(act: Act[Deps], text: str) -> str | NotDone:
    return await act.deps.cms.find(act.key) or NotDone()


async def unpublish(act: Act[Deps], url: str) -> None:
    await act.deps.cms.unpublish(url)


@effect(probe=find_post, undo=unpublish)
async def put_online(act: Act[Deps], text: str) -> str:
    return await act.deps.cms.publish(text, idempotency_key=act.key)


async def write_draft(keyword: str) -> str:
    return keyword


async def write_again(draft: str, notes: str) -> str:
    return draft


publish = Workflow("seo_publish", data=Article, result=str, deps=Deps)


@publish.step(then="review")
async def draft(run: Run[Article, Deps]) -> None:
    run.data.draft = await run.call(write_draft, run.data.keyword)


@publish.step(then=["post", "draft", "archive"])
async def review(run: Run[Article, Deps]) -> Literal["post", "draft", "archive"]:
    answer = await run.ask(
        f"Publish {run.data.keyword!r}?",
        show=run.data.draft,
        edit=["draft"],
        choices=["approve", "rewrite", "reject"],
        by="editors",
        remind="1d",
        expires="3d",
    )
    match answer.choice:
        case "approve":
            return "post"  # the approver's edits are already in run.data
        case "rewrite":
            return "draft"
        case _:
            return "archive"  # "reject", "expired"


@publish.step(then="archive", retry=Retry(attempts=5))
async def post(run: Run[Article, Deps]) -> None:
    run.data.url = await run.once(put_online, run.data.draft)


@publish.step
async def archive(run: Run[Article, Deps]) -> str:
    return run.data.url


# (c) map/reduce


class Page(BaseModel):
    number: int
    text: str


class Doc(BaseModel):
    file_id: str


async def ask_model(text: str) -> str:
    return text


async def read_pages(file_id: str) -> list[Page]:
    return [Page(number=number, text=f"page {number} of {file_id}") for number in range(1, 8)]


@workflow(retry=Retry(attempts=3))
async def summarise_page(run: Run[Page, Deps]) -> str:
    return await run.call(ask_model, run.data.text)


@workflow
async def summarise(run: Run[Doc, Deps]) -> str:
    pages = await run.call(read_pages, run.data.file_id)
    parts = await run.map(summarise_page, pages, limit=5, failures="keep", need=0.95, within="6h")
    missing = [page.number for page, part in zip(pages, parts, strict=True) if isinstance(part, Failed)]
    run.note(f"{len(missing)} pages without a summary: {missing}")
    return await run.call(ask_model, "\n".join(p for p in parts if not isinstance(p, Failed)))


# (d) rows of an inbox tab, at night


class Lead(BaseModel):
    company: str
    score: int = 0


async def score(company: str) -> int:
    return len(company)


@workflow(on=[Inbox("Leads", at=Cron("0 2 * * *", tz="Europe/Berlin"), write_back=["score"])])
async def score_lead(run: Run[Lead, Deps]) -> None:
    run.data.score = await run.call(score, run.data.company)


# (f) loop


class Verdict(BaseModel):
    good: bool
    notes: str


async def critique(text: str) -> Verdict:
    return Verdict(good=True, notes="")


@workflow
async def polish(run: Run[Article, Deps]) -> str:
    text = await run.call(write_draft, run.data.keyword)
    verdict = Verdict(good=False, notes="")
    for _ in range(5):
        verdict = await run.call(critique, text)
        if verdict.good:
            return text
        text = await run.call(write_again, text, verdict.notes)
    raise Fail(f"not good after 5 rounds: {verdict.notes}")


# (g) webhook, timeout, reminder


class Payment(BaseModel):
    amount: float


@effect
async def send_invoice(act: Act[Deps], to: str, callback: str) -> None: ...


@effect
async def send_reminder(act: Act[Deps], to: str) -> None: ...


@workflow
async def invoice(run: Run[Customer, Deps]) -> float:
    await run.once(send_invoice, run.data.email, run.signal_url("paid"))
    for week in range(3):
        if payment := await run.wait("paid", Payment, timeout="7d"):
            return payment.amount
        await run.once(send_reminder.named(f"reminder-{week}"), run.data.email)
    raise Fail("unpaid after three weeks")


# (h) branches that join


@workflow
async def research(run: Run[Article, Deps]) -> list[str]:
    return [await run.call(ask_model, run.data.keyword)]


@workflow
async def draw(run: Run[Article, Deps]) -> bytes:
    return b""


@workflow
async def feature(run: Run[Article, Deps]) -> int:
    facts, image, title = await run.all(
        run.child(research, run.data), run.child(draw, run.data), run.call(write_draft, run.data.keyword)
    )
    return len(facts) + len(image) + len(title)


# (i) ten thousand items


class Batch(BaseModel):
    query: str
    total: int = 0


async def list_ids(query: str) -> list[str]:
    return [f"{query}-{number}" for number in range(250)]


async def touch(item: str) -> int:
    return 1


@workflow
async def sweep(run: Run[Batch, Deps]) -> int:
    ids = await run.call(list_ids, run.data.query)
    async for item in run.each(ids, every=100):
        run.data.total += await touch(item)  # repeated at most for the items since the last save
    return run.data.total


# (k) the imperative user's function, moved


class Parcel(BaseModel):
    number: str


class Order(BaseModel):
    email: str
    items: list[str] = []


def split(order: Order) -> list[Parcel]:
    return [Parcel(number=f"parcel-{item}") for item in order.items]


async def check(order: Order) -> bool:
    return "rare" not in order.items


async def backorder(order: Order) -> None: ...


@effect
async def ship(act: Act[Deps], parcel: Parcel) -> None: ...


@effect
async def mail(act: Act[Deps], to: str) -> None: ...


@workflow(retry=Retry(attempts=5))
async def handle(run: Run[Order, Deps]) -> None:
    if not await run.call(check, run.data):
        await run.call(backorder, run.data)
        await run.wait("restocked", timeout="30d")
    for parcel in split(run.data):
        await run.once(ship.named(parcel.number), parcel)
    await run.once(mail, run.data.email)


# a plain function as a step: the same, without await


tally = Workflow("tally")


@tally.step(then="tell")
def add(run: SyncRun[dict[str, Any]]) -> None:
    run.data["sum"] = run.call(sum, run.data["numbers"])


@tally.step
def tell(run: SyncRun[dict[str, Any]]) -> None:
    run.sleep("1h")


async def main(client: Client) -> str:
    started = await client.start(publish, Article(keyword="x"), id="kw_x")
    url: str = await started.result(timeout="1h")
    return url
