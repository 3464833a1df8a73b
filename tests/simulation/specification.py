"""What Quire promises to somebody outside: one plain model, in which one thing happens after the other.

A record lives by its script, one thing after the other. People give orders, and each order is answered: it is *taken*,
or it is *refused* and changes nothing. Between any two answers Quire makes moves of its own, and nobody can say which
or how many. So the model does not say where a record is: it says where it *can* be. Each answer, and each thing that
is seen in the world, leaves fewer possibilities. If none is left, then a promise was broken.

The promises:

1.  A record that was started goes on by itself, unless it waits for something that its script names: a moment, a
    signal, a person, children. It ends as DONE, as ERROR if something in its script can fail, or as CANCELLED if
    somebody wanted that. A step that ends its process each time ends as ERROR, and fails no other record.
2.  No effect begins but the one at which the record is. None begins after a wish to cancel was taken, nor under a halt.
3.  A signal that was taken is heard once, by a wait of its name, in the order of their coming. A wait may end without
    one if its script says so. A question hears the answer that decided it: any, or that on which enough people agree.
    An act that waits for people begins when they have released it.
4.  Children come to be at the place of their script, and their parent goes on when they have ended. If a child fails,
    the parent fails, unless it keeps failures and enough have a result. When a parent ends or goes on without them,
    its open children are let go: they are cancelled. A child that a halt holds has not ended: its parent waits.
5.  A wish to cancel that was taken comes true, whatever happens to workers, unless the record comes to an end of its
    own first, or a person tries it again after its end. A wish to undo comes true after any end.
6.  A halt that was taken holds every record in its scope that has not ended: it reads as CANCELLED as soon as nothing
    of it is under way. It stays so until somebody brings back what was cancelled, or tries that record again.
    What is brought back goes on where it stood. An undoing that was ordered since waits only until the halt ends.
7.  While an effect may or may not have happened, its record neither ends nor goes on. A person may say which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.simulation.family import Family, Member
from tests.simulation.history import Found, Happening, Order
from tests.simulation.script import Do, Word

PENDING, RUNNING, WAITING, ASKS = "PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL"
DONE, ERROR, CANCELLED = "DONE", "ERROR", "CANCELLED"
FAILED = (ERROR, CANCELLED)

#: How a halt stands to a record: not at all; it holds the record until somebody brings it back; somebody is doing so;
#: or it delays an undoing that was ordered since, until the halt ends.
FREE, HELD, RETURNS, WAITS = "", "held", "returns", "waits"
#: What a wait hears that ended before its signal came.
LATE = "late"
#: A record is tried so often, in all, at a place that fails.
TRIES = 3


class Life(NamedTuple):
    """Where one record can be."""

    #: Somebody started it.
    there: bool = False
    #: It does this thing of this part of its script next. Each entry into a part is a visit.
    part: int = 0
    place: int = 0
    visit: int = 1
    #: That thing has begun: the effect may happen, the children are there. Or it is done.
    begun: bool = False
    done: bool = False
    #: It waits, before its part, until a person moves it on.
    rests: bool = False
    #: DONE, ERROR or CANCELLED, once it has ended.
    end: str = ""
    #: What somebody wants of it: cancel, or undo.
    wish: str = ""
    halt: str = FREE
    #: What it did is being taken back, or was.
    undoing: bool = False
    #: Signals that no wait has heard, in order: name and value. What was heard: where, and the value.
    signals: tuple[tuple[str, str], ...] = ()
    heard: tuple[tuple[int, str, str], ...] = ()
    #: How many people have agreed to what it asks; 1 of an act that waited for people: they released it.
    votes: int = 0
    #: How often it started children.
    families: int = 0

    @property
    def open(self) -> bool:
        return self.there and not self.end

    @property
    def where(self) -> str:
        return f"{self.part}.{self.place}"


#: Of each record of a family the places where it can be.
Lives = Sequence[frozenset[Life]]


class Specification(Family):
    """The promises to one family."""

    # -- the moves that Quire makes by itself -------------------------------------------------------------------

    def moves(self, number: int, life: Life, lives: Lives) -> Iterator[Life]:
        """The next moves of one record."""
        member = self.members[number]
        parents = self.parents(number, lives)
        if not life.there:
            born = any(parent.begun and parent.families >= member.family for parent in parents)
            if born or member.workflow == "scheduled":
                yield life._replace(there=True)
            return
        if life.end:
            return
        if life.halt == RETURNS:
            yield life._replace(halt=FREE)
        if not life.wish and any(_lets_go(parent, member) for parent in parents):
            yield life._replace(wish="cancel")
        do = self.next_of(number, life)
        acting = do is not None and do.word is Word.ACT and life.begun and not life.done
        if life.wish and not acting:
            if life.wish == "undo" and not life.undoing:
                yield undoing(life)
            elif life.wish == "cancel":
                yield life._replace(end=CANCELLED, wish="")
        if life.undoing:
            if not life.wish and all(any(not one.open for one in lives[n]) for n in self.descendants(number)):
                yield life._replace(end=CANCELLED)
            return
        if life.rests:
            return
        if do is None:
            yield life._replace(end=DONE)
            return
        yield from self.goes_on(number, life, do, lives)
        if not acting and self.may_fail(number, life, lives):
            yield undoing(life) if member.workflow == "undoing" else life._replace(end=ERROR)

    def goes_on(self, number: int, life: Life, do: Do, lives: Lives) -> Iterator[Life]:
        """How the thing at which a record is can come to be done."""
        if life.done:
            yield self.beyond(number, life)
            return
        match do.word:
            case Word.ACT if life.begun:
                yield life._replace(done=True)
                yield life._replace(begun=False)  # it surely did not happen
            case Word.SLEEP | Word.CALL | Word.FAIL | Word.POISON if 0 <= do.times < TRIES:
                yield life._replace(done=True)
            case Word.WAIT:
                if do.seconds:
                    yield hears(life, LATE)
                heard = [n for n, (name, _) in enumerate(life.signals) if name == do.name][:1]
                for n in heard:
                    left = (*life.signals[:n], *life.signals[n + 1 :])
                    yield hears(life, life.signals[n][1])._replace(signals=left)
            case Word.CHILDREN if not life.begun:
                if not life.wish and life.halt != HELD:
                    for family in self.families_after(number, do.name, life.families):
                        yield life._replace(begun=True, families=family)
            case Word.CHILDREN:
                here = self.here(number, life)
                well = sum(any(child.end == DONE for child in lives[n]) for n in here)
                over = all(any(child.end in (DONE, *FAILED) for child in lives[n]) for n in here)
                if here and over and well >= len(here) - bearable(len(here), do.keep, do.need):
                    yield life._replace(done=True)

    def next_of(self, number: int, life: Life) -> Do | None:
        """What a record does next; None: its script is done."""
        return self.do_at(number, life.part, life.place)

    def beyond(self, number: int, life: Life) -> Life:
        """The record comes to the next thing: of the same visit, or of the next part."""
        script = self.members[number].script
        life = life._replace(place=life.place + 1, begun=False, done=False, votes=0)
        if life.place < len(script.parts[life.part]):
            return life
        part = life.part + 1
        return life._replace(part=part, place=0, visit=life.visit + 1, rests=part in script.rests)

    def may_fail(self, number: int, life: Life, lives: Lives) -> bool:
        """Whether something of this visit, up to where the record is, can fail so often that the record does."""
        for do in self.up_to(number, life.part, life.place):
            if (do.word in (Word.FAIL, Word.ACT) and do.times) or (do.word is Word.POISON and do.times < 0):
                return True
        if self.members[number].record in self.killers:
            return True
        here = self.next_of(number, life)
        if here is None or here.word is not Word.CHILDREN or not life.begun:
            return False
        children = self.here(number, life)
        failed = sum(any(child.end in FAILED for child in lives[n]) for n in children)
        return failed > bearable(len(children), here.keep, here.need)

    def here(self, number: int, life: Life) -> list[int]:
        """The children for which a record waits."""
        do = self.next_of(number, life)
        return self.born(number, do.name if do is not None else "", life.families)

    # -- orders -------------------------------------------------------------------------------------------------

    def ordered(self, number: int, life: Life, halted: frozenset[str], order: Order) -> Life:
        """What becomes of a record by an order to its workflow, or to all. ``halted``: what is halted after it."""
        workflow = self.members[number].workflow
        if order.what not in ("", workflow) or not life.open:
            return life
        if order.verb == "halt":
            return life._replace(halt=HELD)
        if not order.verb.startswith("resume") or halted & {"", workflow}:
            return life  # what another halt holds stays held
        if life.halt == WAITS:
            return life._replace(halt=FREE)
        back = order.verb == "resume --cancelled" and life.halt == HELD
        return life._replace(halt=RETURNS) if back else life

    def is_back(self, number: int, life: Life, order: Order) -> Life:
        """``resume --cancelled`` has been answered: the record is back."""
        concerned = life.halt == RETURNS and order.what in ("", self.members[number].workflow)
        return life._replace(halt=FREE) if concerned else life

    def answers(self, number: int, life: Life, halted: bool, order: Order) -> Iterator[Life]:
        """What becomes of a record by an order that was answered so. Nothing: it cannot have been answered so."""
        taken = self.taken(number, life, halted, order)
        if not order.refused:
            yield from taken
        elif not taken or order.answer == "StaleVersion" or self.may_refuse(number, life, halted, order):
            yield life  # a refusal changes nothing

    def taken(self, number: int, life: Life, halted: bool, order: Order) -> list[Life]:
        """What a record can become by an order. Nothing: the order is refused."""
        do = self.next_of(number, life)
        held = halted or life.halt != FREE
        asks = do is not None and not (life.done or life.rests or life.begun) and _asks(do, life)
        acting = do is not None and do.word is Word.ACT and life.begun and not life.done
        anew = life._replace(
            place=0, visit=life.visit + 1, begun=False, done=False, rests=False, end="", wish="", votes=0
        )
        match order.verb:
            case "start":
                return [life] if life.there else [] if halted else [life._replace(there=True)]
            case "look":
                return [life] if life.there else []
            case "cancel" if life.open:
                wished = life._replace(wish=life.wish or "cancel")
                return [wished, life] if life.undoing else [wished]
            case "cancel" if life.end == ERROR:
                return [life._replace(end=CANCELLED)]
            case "cancel --undo" if life.there and not life.undoing:
                wished = life._replace(wish="undo", halt=WAITS if halted else FREE)
                return [wished] if not life.end else [] if halted else [undoing(life)]
            case "signal" if life.open and not held:
                return [life._replace(signals=(*life.signals, (order.what, str(order.value))))]
            case "answer" if life.open and asks and not held:
                return [_answered(life, do, str(order.value))] if do is not None else []
            case "resolve" if life.open and (acting or life.undoing):
                return [life, life._replace(done=True), life._replace(begun=False)]
            case "move" if life.there and life.end in ("", ERROR) and not (held or acting or life.undoing):
                return [anew] if do is not None else []
            case "rewind" if life.there and not (halted or acting):
                return [anew._replace(undoing=False, halt=FREE)]
            case "edit" if life.there and life.end != DONE:
                return [life]
            case "priority" if life.there:
                return [life]
            case "retry" if life.there and life.end != DONE and not halted:
                return [*self.tried_again(number, life)]
        return []

    def may_refuse(self, number: int, life: Life, halted: bool, order: Order) -> bool:
        """Whether an order may be refused that may as well be taken.

        A retry of what does not back off, of a child, and of what was taken back. A move, a rewind or an edit of what
        runs. An undo of what a halt holds, unless something of it is under way.
        """
        child = bool(self.members[number].parent)
        if order.verb == "retry":
            return life.open or child or life.undoing
        if order.verb in ("move", "rewind", "edit"):
            return life.open or (child and order.verb != "edit")
        if order.verb == "answer":
            return life.votes > 0  # somebody answers twice
        if order.verb == "resolve":
            return order.value is None  # it may still happen
        return order.verb == "cancel --undo" and halted

    def tried_again(self, number: int, life: Life) -> Iterator[Life]:
        """A record is tried again: it goes on where it is. Children that failed are done again."""
        life = life._replace(end="", wish="", halt=FREE)
        yield life
        for place, do in enumerate(self.up_to(number, life.part, life.place)):
            if do.word is Word.CHILDREN:
                yield life._replace(place=place, begun=False, done=False)

    # -- what is seen -------------------------------------------------------------------------------------------

    def seen(self, number: int, life: Life, happening: Happening) -> Iterator[Life]:
        do = self.next_of(number, life)
        match happening.kind:
            case "begins":
                here = do is not None and do.word is Word.ACT and do.name == happening.name
                here = here and do is not None and (life.votes > 0 or not do.parked)
                if here and life.visit == happening.visit and self.may_begin(life):
                    yield life._replace(begun=True)
            case "begins to undo":
                if life.open and life.undoing and not life.wish and life.halt not in (HELD, WAITS):
                    yield life
            case "passes":
                part, place = map(int, happening.name.split("."))
                here = (life.visit, life.part, life.place, life.done) >= (happening.visit, part, place, True)
                word = self.members[number].script.parts[part][place].word
                if word in (Word.CALL, Word.FAIL, Word.SLEEP, Word.POISON) or (here and _heard(life, word, happening)):
                    yield life
            case _:
                yield life

    def may_begin(self, life: Life) -> bool:
        return life.open and not (life.done or life.rests or life.wish or life.undoing) and life.halt != HELD

    def can_read(self, number: int, life: Life, status: str) -> bool:
        """Whether people can see a record in this status."""
        if life.end or not life.there:
            return status == life.end
        do = self.next_of(number, life)
        acting = do is not None and do.word is Word.ACT
        if status in (RUNNING, PENDING):
            return status == RUNNING or life.undoing or (life.halt != HELD and (acting or not life.wish))
        if status == CANCELLED:
            return life.halt != FREE
        if status == ASKS:
            return acting or life.undoing or (do is not None and do.word is Word.ASK)
        slow = do is not None and do.word not in (Word.CALL, Word.FAIL, Word.ASK)
        turn = (life.part, life.place) == (0, 0) and bool(self.members[number].parent)
        return status == WAITING and life.halt != HELD and (slow or life.rests or life.undoing or turn)

    def rests(self, number: int, life: Life, all_found: Mapping[str, Found], lives: Lives) -> bool:
        """Whether a record that can be here can have come to rest so."""
        member = self.members[number]
        found = all_found[member.record]
        if life.end or not life.there:
            return found.status == life.end
        parents = self.parents(number, lives)
        if parents and all(_lets_go(parent, member) for parent in parents):
            return False
        if life.halt == HELD:
            return found.status == CANCELLED
        do = self.next_of(number, life)
        if found.why == "signal":
            waits = do is not None and do.word is Word.WAIT and not (do.seconds or life.done or life.wish)
            return waits and all(name != do.name for name, _ in life.signals if do is not None)
        if found.why == "children":
            here = self.here(number, life)
            return life.begun and not life.done and any(one.open for n in here for one in lives[n])
        others = (one for one in all_found.values() if one.parent == member.parent)
        return found.why == "turn" and any(one.why in ("signal", "children") for one in others)


def _lets_go(parent: Life, child: Member) -> bool:
    """Whether a parent that is here does without this child."""
    waits = parent.open and parent.begun and not parent.done and parent.families == child.family
    return parent.families >= child.family and not waits


def bearable(count: int, keep: bool, need: float) -> int:
    """How many of so many children may fail."""
    return count - math.ceil(count * need - 1e-9) if keep else 0


def _asks(do: Do, life: Life) -> bool:
    """Whether people are asked something here: a question, or whether an act may be done."""
    return do.word is Word.ASK or (do.word is Word.ACT and do.parked and not life.votes)


def _answered(life: Life, do: Do, value: str) -> Life:
    """What a person's answer comes to. The first choice goes ahead when enough have agreed; another decides at once."""
    if do.word is Word.ACT:
        return life._replace(votes=1) if value == "approve" else life._replace(done=True)
    enough = value != "yes" or life.votes + 1 >= do.times
    return hears(life, value) if enough else life._replace(votes=life.votes + 1)


def _heard(life: Life, word: Word, happening: Happening) -> bool:
    if word not in (Word.WAIT, Word.ASK):
        return True
    value = LATE if isinstance(happening.value, float) else str(happening.value)
    return (happening.visit, happening.name, value) in life.heard


def hears(life: Life, value: str) -> Life:
    return life._replace(done=True, heard=(*life.heard, (life.visit, life.where, value)))


def undoing(life: Life) -> Life:
    life = life._replace(end="", wish="", undoing=True, visit=life.visit + 1)
    return life._replace(begun=False, done=False, rests=False, votes=0)
