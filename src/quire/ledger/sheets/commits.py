"""The write side of a Sheets ledger: verbs that wait are planned together over the replica and land as one entry.

If the entry lands, nobody has written since, so the plan is true; if it is refused, the new entries are applied and
everything is planned again. A plan that writes nothing is true only of what was read after the verb was asked, so it
is answered after a read. The quota is taken before the last planning: whoever came while it was short shares the write.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from quire.clock import Clock, new_id
from quire.errors import QuireError
from quire.google.budget import Urgency
from quire.google.error import GoogleError
from quire.ledger.blobs import kept_apart
from quire.ledger.sheets.journal import Log, Sent, ledger_error
from quire.ledger.sheets.journal_rows import body_of, in_file, new_entry
from quire.ledger.sheets.long_values import LongValues
from quire.ledger.sheets.plan import Plan
from quire.ledger.sheets.replica import Replica

T = TypeVar("T")

#: A commit carries the changes of so many verbs at the most.
SHARED_VERBS = 1000
#: A snapshot beyond this is a file in Drive; beyond the second figure it does not fit one request either.
SNAPSHOT_IN_FILE = 1_000_000
SNAPSHOT_CHARACTERS = 20_000_000


class _Job(NamedTuple):
    """A verb that waits for its commit."""

    plan: Callable[[Plan], Any]
    urgency: Urgency
    done: asyncio.Future[Any]
    #: It shares its commit with nobody.
    alone: bool
    worker: str
    #: If there is nothing to write, a read of so many seconds ago is new enough.
    lag: float

    def answer(self, answer: Any) -> None:
        """Give the verb what it asked for, or the error that came instead, unless its caller went away."""
        if self.done.done():
            return
        if isinstance(answer, Exception):
            self.done.set_exception(answer)
        else:
            self.done.set_result(answer)


class Commits:
    def __init__(self, log: Log, clock: Clock) -> None:
        self.log = log
        self.clock = clock
        self._jobs: deque[_Job] = deque()
        self._pumping: asyncio.Task[None] | None = None

    async def ask(
        self, plan: Callable[[Plan], T], urgency: Urgency, *, alone: bool = False, worker: str = "", lag: float = 0.0
    ) -> T:
        """Decide this verb in the next commit, with others that wait."""
        self.log.check()
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(plan, urgency, done, alone, worker, lag))
        if self._pumping is None:
            self._pumping = asyncio.ensure_future(self._pump())
        return cast(T, await done)

    async def quiet(self) -> None:
        """Return when nothing waits any more."""
        while self._pumping is not None:
            await asyncio.wait({self._pumping})

    async def _pump(self) -> None:
        try:
            while self._jobs:
                jobs = self._with_others([self._jobs.popleft()])
                try:
                    await self._decide(jobs)
                except Exception as error:  # noqa: BLE001 - raised for those who wait, and the next verbs go on
                    raised = ledger_error(error) if isinstance(error, GoogleError) else error
                    for job in jobs:
                        if not job.done.done():
                            job.done.set_exception(raised)
        finally:
            self._pumping = None
            for job in self._jobs:
                job.done.cancel()

    def _with_others(self, jobs: list[_Job]) -> list[_Job]:
        """These jobs, in the same list, and those that may share their commit."""
        while self._jobs and not jobs[0].alone and not self._jobs[0].alone and len(jobs) < SHARED_VERBS:
            jobs.append(self._jobs.popleft())
        return jobs

    async def _decide(self, jobs: list[_Job]) -> None:
        """Plan, send, and plan again until it landed, or until a read has shown that there is nothing to write."""
        log, read, paid, losses = self.log, False, False, 0
        while True:
            await log.settle_unknown()
            log.check()
            jobs[:] = [job for job in jobs if not job.done.done()]
            if not jobs:
                return
            plan, answers = self._planned(jobs)
            urgency = min(job.urgency for job in jobs)
            if not plan.writes:
                if not read and self.clock.boottime() - log.read_at >= min(job.lag for job in jobs):
                    await log.sync(urgency)
                    read = True
                    continue
                break
            if not paid:
                seq = log.replica.seq
                waited = await log.transport.budgets.writes.take(urgency)
                paid = True
                before = len(jobs)
                if len(self._with_others(jobs)) > before or log.replica.seq != seq or waited:
                    continue  # what is true by now, for all who wait by now
            for job in jobs:
                if job.worker:
                    plan.renew(job.worker)
            landed = await self._commit(plan, urgency, paid=paid)
            if landed:
                break
            losses += 1
            read, paid = True, False
            if losses > 1:
                await log.pause(min(losses, 5))
        for job, answer in answers:
            job.answer(answer)

    def _planned(self, jobs: Sequence[_Job]) -> tuple[Plan, list[tuple[_Job, Any]]]:
        failed: dict[int, Exception] = {}
        while True:
            plan = Plan(self.log.replica.tables, self.clock.now())
            answers: list[tuple[_Job, Any]] = []
            for n, job in enumerate(jobs):
                if n in failed:
                    answers.append((job, failed[n]))
                    continue
                try:
                    answers.append((job, job.plan(plan)))
                except Exception as error:  # noqa: BLE001 - the verb fails alone, and leaves nothing in the plan
                    failed[n] = error
                    break
            else:
                return plan, answers

    async def _commit(self, plan: Plan, urgency: Urgency, *, paid: bool) -> bool:
        """Send the plan as the next entry; False: another entry stands there, which is applied by now."""
        last = self.log.replica.last
        assert last is not None
        body = await self._body(plan)
        if self.log.replica.last is not last and self.log.replica.seq != last.seq:
            return False  # somebody wrote while the long values were on their way
        entry = new_entry(
            last, commit_id=new_id("c_"), at=plan.draft.now, worker=plan.by, body=body, snapshot=plan.snapshot
        )
        records = tuple(plan.draft.records.values()) if not plan.rewrite_state else ()
        return await self.log.land(Sent(entry, records, urgency, plan.rewrite_state), paid=paid)

    async def _body(self, plan: Plan) -> str:
        replica, long_values = self.log.replica, self.log.long_values
        if plan.snapshot:
            return await snapshot_body(replica, long_values)
        short, blobs, files, others = plan.body(replica)
        made = await long_values.keep(blobs, replica.home)
        return _text_of(replica, long_values, short, blobs, files | made, others)


async def snapshot_body(replica: Replica, long_values: LongValues) -> str:
    """The text of an entry that says it all; a long one is a file in Drive before this returns (protocol 20)."""
    short, blobs, files, others = replica.snapshot(long_values.spreadsheet_id)
    files = files | await long_values.keep(blobs, replica.home)
    text = _text_of(replica, long_values, short, blobs, files, others)
    if len(text) <= SNAPSHOT_IN_FILE:
        return text
    if await long_values.home(replica.home):
        text = _text_of(replica, long_values, short, blobs, files, others)
        reference = kept_apart(text, {})
        if kept := await long_values.keep({reference: text}, replica.home):
            return in_file(reference, kept[reference])
    if len(text) > SNAPSHOT_CHARACTERS:
        raise SnapshotTooLong(
            f"the journal of {long_values.spreadsheet_id} does not begin anew: a snapshot has {len(text):,} "
            f"characters, and there is no room for it in Drive ({long_values.refused})"
        )
    return text


def _text_of(
    replica: Replica,
    long_values: LongValues,
    short: Mapping[str, Sequence[Any]],
    blobs: Mapping[str, str],
    files: Mapping[str, str],
    others: Mapping[str, Any],
) -> str:
    """Return the text of an entry. What is too long for a cell is a file in Drive by now (protocol 20)."""
    home = {"home": long_values.folder} if long_values.folder and not replica.home else {}
    left = {reference: text for reference, text in blobs.items() if reference not in files}
    return body_of(short, left, files, {**others, **home})


class SnapshotTooLong(QuireError):
    """There is no place for a snapshot; the journal goes on growing."""
