"""The examples of the API do what they say, also when the worker is killed at every one of its writes."""

from __future__ import annotations

from examples import api
from quire.testing import Trial, every_kill


class FakeCms:
    async def publish(self, text: str, *, idempotency_key: str) -> str:
        return "https://x/1"

    async def find(self, key: str) -> str | None:
        return None

    async def unpublish(self, url: str) -> None: ...


class FakeGoogle:
    def __init__(self) -> None:
        self.rows: dict[str, list[str]] = {}
        self.trashed: list[str] = []

    async def new_id(self) -> str:
        return "folder-7"

    async def create_folder(self, name: str, *, file_id: str) -> str:
        return file_id

    async def copy(self, template: str, parent: str, *, key: str) -> str:
        return f"copy of {template} in {parent}"

    async def find(self, *, key: str) -> str | None:
        return None

    async def trash(self, file_id: str) -> None:
        self.trashed.append(file_id)

    async def fill(self, doc: str, values: dict[str, str]) -> None: ...

    async def pdf(self, doc: str) -> bytes:
        return doc.encode()

    async def send(self, to: str, pdf: bytes, *, message_id: str) -> None: ...

    async def sent(self, message_id: str) -> bool:
        return False

    async def put_row(self, tab: str, key: str, row: list[str]) -> None:
        self.rows[key] = row


def fakes() -> api.Deps:
    return api.Deps(google=FakeGoogle(), cms=FakeCms())


@every_kill
async def test_onboarding_makes_one_folder_one_copy_and_sends_one_mail() -> None:
    deps = fakes()
    async with Trial(api.onboard, deps=deps) as trial:
        record = await trial.start(api.Customer(name="Acme", email="ann@x.eu"))
        await trial.settle()

        assert record.status == "DONE", record.error
        assert record.result == "copy of tmpl_1 in folder-7"
        assert set(trial.acts(api.make_folder)) == {("Acme", "folder-7")}
        assert trial.acts(api.copy_template) == [("tmpl_1", "folder-7")]
        assert trial.acts(api.mail_pdf) == [("ann@x.eu", "copy of tmpl_1 in folder-7")]
        assert isinstance(deps.google, FakeGoogle)
        assert deps.google.rows == {record.record_id: ["Acme", "copy of tmpl_1 in folder-7"]}


@every_kill
async def test_the_editors_text_is_published_once() -> None:
    async with Trial(api.publish, deps=fakes(), groups={"editors": ["ann@x.eu"]}) as trial:
        record = await trial.start(api.Article(keyword="quires"))
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL"

        await record.answer("approve", by="ann@x.eu", edits={"draft": "Better."})
        await trial.settle()

        assert record.status == "DONE" and record.result == "https://x/1"
        assert trial.acts(api.put_online) == [("Better.",)]


async def test_a_draft_that_is_written_again_is_published_with_the_new_text() -> None:
    async with Trial(api.publish, deps=fakes(), groups={"editors": ["ann@x.eu"]}) as trial:
        record = await trial.start(api.Article(keyword="quires"))
        await trial.settle()
        await record.answer("rewrite", by="ann@x.eu")
        await trial.settle()
        await record.answer("approve", by="ann@x.eu")
        await trial.settle()

        assert record.status == "DONE"
        assert trial.acts(api.put_online) == [("quires",)]


async def test_an_unanswered_review_is_archived_after_three_days() -> None:
    async with Trial(api.publish, deps=fakes(), groups={"editors": ["ann@x.eu"]}) as trial:
        record = await trial.start(api.Article(keyword="quires"))

        await trial.advance("3d")

        assert record.step == "archive" and not trial.acts(api.put_online)
        kinds = [event.kind for event in await trial.client.events(record.record_id)]
        assert kinds.count("reminded") == 2 and "expired" in kinds


@every_kill
async def test_pages_are_summarised_in_order() -> None:
    async with Trial(api.summarise, deps=fakes(), also=[api.summarise_page]) as trial:
        record = await trial.start(api.Doc(file_id="f"))
        await trial.settle()

        assert record.result == "\n".join(f"page {number} of f" for number in range(1, 8))
        assert record.record.note == "0 pages without a summary: []"


async def test_a_lead_is_scored() -> None:
    async with Trial(api.score_lead, deps=fakes()) as trial:
        record = await trial.start(api.Lead(company="Acme"))
        await trial.settle()

        assert record.status == "DONE" and record.data.score == 4


async def test_a_text_that_is_good_is_not_polished_again() -> None:
    async with Trial(api.polish, deps=fakes()) as trial:
        record = await trial.start(api.Article(keyword="quires"))
        await trial.settle()

        assert record.result == "quires"


@every_kill
async def test_an_invoice_is_sent_once_reminded_once_and_paid_by_a_signal() -> None:
    async with Trial(api.invoice, deps=fakes()) as trial:
        record = await trial.start(api.Customer(name="Acme", email="ann@x.eu"))
        await trial.settle()
        assert record.status == "WAITING"

        await trial.advance("8d")
        await record.signal("paid", {"amount": 12.5})
        await trial.settle()

        assert record.result == 12.5
        assert len(trial.acts(api.send_invoice)) == 1
        assert trial.acts(api.send_reminder) == [("ann@x.eu",)]


async def test_an_unpaid_invoice_fails_after_three_reminders() -> None:
    async with Trial(api.invoice, deps=fakes()) as trial:
        record = await trial.start(api.Customer(name="Acme", email="ann@x.eu"))

        await trial.advance("22d")

        assert record.status == "ERROR" and "unpaid after three weeks" in record.error
        assert len(trial.acts(api.send_reminder)) == 3


@every_kill
async def test_branches_join() -> None:
    async with Trial(api.feature, deps=fakes(), also=[api.research, api.draw]) as trial:
        record = await trial.start(api.Article(keyword="quires"))
        await trial.settle()

        assert record.result == 1 + 0 + 6


@every_kill
async def test_a_loop_counts_every_item_once() -> None:
    async with Trial(api.sweep, deps=fakes()) as trial:
        record = await trial.start(api.Batch(query="q"))
        await trial.settle()

        assert record.result == 250 and record.data.total == 250


@every_kill
async def test_an_order_waits_for_what_is_rare_and_ships_each_parcel_once() -> None:
    async with Trial(api.handle, deps=fakes()) as trial:
        record = await trial.start(api.Order(email="ann@x.eu", items=["rare", "plain"]))
        await trial.settle()
        assert record.status == "WAITING"

        await record.signal("restocked")
        await trial.settle()

        assert record.status == "DONE"
        assert [parcel.number for (parcel,) in trial.acts(api.ship)] == ["parcel-rare", "parcel-plain"]
        assert trial.acts(api.mail) == [("ann@x.eu",)]


async def test_a_plain_function_is_a_step() -> None:
    async with Trial(api.tally) as trial:
        record = await trial.start({"numbers": [1, 2, 3]})
        await trial.settle()
        assert record.status == "WAITING" and record.step == "tell"

        await trial.advance("1h")

        assert record.status == "DONE" and record.data["sum"] == 6
