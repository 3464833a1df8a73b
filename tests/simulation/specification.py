"""What Quire promises to somebody outside: one plain model, in which one thing happens after the other.

A record lives by its script, one thing after the other. People give orders, and each order is answered: it is *taken*,
or it is *refused* and changes nothing. Between any two answers Quire makes moves of its own, and nobody can say which
or how many. So the model does not say where a record is: it says where it *can* be. Each answer, and each thing that
is seen in the world, leaves fewer possibilities. If none is left, then a promise was broken.

The promises:

1.  A record that was started goes on by itself, unless it waits for something that its script names: a moment, a
    signal, a person, children. It ends as DONE, as ERROR if something in its script can fail, or as CANCELLED if
    somebody wanted that.
2.  No effect begins but the one at which the record is. None begins after a wish to cancel was taken, nor under a halt.
3.  A signal that was taken is heard once, by a wait of its name, in the order of their coming. A question hears the
    answer that was taken, and takes one.
4.  Children come to be at the place of their script, and their parent goes on when they have ended. If a child fails,
    the parent fails, unless it keeps failures. When a parent ends or goes on without them, its open children are let
    go: they are cancelled. A child that a halt holds has failed for a parent that the halt does not hold.
5.  A wish to cancel that was taken comes true, whatever happens to workers, unless the record comes to an end of its
    own first, or a person tries it again after its end. A wish to undo comes true after any end.
6.  A halt that was taken holds every record in its scope that has not ended: it reads as CANCELLED as soon as nothing
    of it is under way. It stays so until somebody brings back what was cancelled, or tries that record again.
    What is brought back goes on where it stood.
7.  While an effect may or may not have happened, its record neither ends nor goes on. A person may say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.simulation.history import Found, Happening, Order
from tests.simulation.script import Do, Script, Word

PENDING, RUNNING, WAITING, ASKS = "PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL"
DONE, ERROR, CANCELLED = "DONE", "ERROR", "CANCELLED"

#: How a halt stands to a record: not at all; it holds the record; or somebody is bringing the record back.
FREE, HELD, RETURNS = "", "held", "returns"
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
    #: How often it started children.
    families: int = 0

    @property
    def open(self) -> bool:
        return self.there and not self.end

    @property
    def where(self) -> str:
        return f"{self.part}.{self.place}"


class Member(NamedTuple):
    """What never changes of a record of a family."""

    record: str
    workflow: str
    script: Script
    parent: str = ""
    #: Which children of its parent it is one of: their name, and how often the parent had started children by then.
    of: str = ""
    family: int = 0


class State(NamedTuple):
    """Where all of a family can be: of each record the possibilities. And which orders to the whole ledger stand."""

    lives: tuple[frozenset[Life], ...]
    #: Halted: workflows, or everything ("").
    halted: frozenset[str] = frozenset()


class Specification:
    """The promises to one family: a record that people started, and all that descends from it."""

    def __init__(self, members: Iterable[Member]) -> None:
        self.members = sorted(members)
        self.numbers = {member.record: number for number, member in enumerate(self.members)}
        self.children: dict[str, list[int]] = {member.record: [] for member in self.members}
        for number, member in enumerate(self.members):
            if member.parent:
                self.children[member.parent].append(number)

    def beginning(self) -> State:
        return State(tuple(frozenset({Life()}) for _ in self.members))

    # -- the moves that Quire makes by itself -------------------------------------------------------------------

    def later(self, state: State) -> State:
        """All that can be after any number of Quire's own moves."""
        lives = list(state.lives)
        todo = set(range(len(lives)))
        while todo:
            number = todo.pop()
            found = set(lives[number])
            new = list(found)
            while new:
                new = [life for old in new for life in self.moves(number, old, lives, state) if life not in found]
                found.update(new)
            if len(found) > len(lives[number]):
                lives[number] = frozenset(found)
                member = self.members[number]
                todo.update(self.children[member.record])
                if member.parent:
                    todo.add(self.numbers[member.parent])
        return state._replace(lives=tuple(lives))

    def moves(self, number: int, life: Life, lives: list[frozenset[Life]], state: State) -> Iterator[Life]:
        """The next moves of one record."""
        member = self.members[number]
        parents = lives[self.numbers[member.parent]] if member.parent else frozenset()
        if not life.there:
            if any(parent.begun and parent.families >= member.family for parent in parents):
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
            descendants = self.descendants(number)
            if not life.wish and all(any(not one.open for one in lives[n]) for n in descendants):
                yield life._replace(end=CANCELLED)
            return
        if life.rests:
            return
        if do is None:
            yield life._replace(end=DONE)
            return
        yield from self.goes_on(number, life, do, lives, state)
        if not acting and self.may_fail(number, life, lives):
            yield undoing(life) if member.workflow == "undoing" else life._replace(end=ERROR)

    def goes_on(self, number: int, life: Life, do: Do, lives: list[frozenset[Life]], state: State) -> Iterator[Life]:
        """How the thing at which a record is can come to be done."""
        if life.done:
            yield self.beyond(number, life)
            return
        match do.word:
            case Word.ACT if life.begun:
                yield life._replace(done=True)
                yield life._replace(begun=False)  # it surely did not happen
            case Word.SLEEP | Word.CALL:
                yield life._replace(done=True)
            case Word.FAIL if 0 <= do.times < TRIES:
                yield life._replace(done=True)
            case Word.WAIT:
                heard = next((signal for signal in life.signals if signal[0] == do.name), None)
                if heard is not None:
                    signals = list(life.signals)
                    signals.remove(heard)
                    yield hears(life, heard[1])._replace(signals=tuple(signals))
            case Word.CHILDREN if not life.begun:
                if not life.wish and life.halt != HELD:
                    yield life._replace(begun=True, families=life.families + 1)
            case Word.CHILDREN:
                here = self.here(number, life)
                if here and all(any(_counts(child, life, keep=do.keep) for child in lives[n]) for n in here):
                    yield life._replace(done=True)

    def next_of(self, number: int, life: Life) -> Do | None:
        """What a record does next; None: its script is done."""
        parts = self.members[number].script.parts
        return parts[life.part][life.place] if life.part < len(parts) else None

    def so_far(self, number: int, life: Life) -> tuple[Do, ...]:
        """What a record has come to in this visit."""
        parts = self.members[number].script.parts
        return parts[life.part][: life.place + 1] if life.part < len(parts) and not life.rests else ()

    def beyond(self, number: int, life: Life) -> Life:
        """The record comes to the next thing: of the same visit, or of the next part."""
        script = self.members[number].script
        life = life._replace(place=life.place + 1, begun=False, done=False)
        if life.place < len(script.parts[life.part]):
            return life
        part = life.part + 1
        return life._replace(part=part, place=0, visit=life.visit + 1, rests=part in script.rests)

    def may_fail(self, number: int, life: Life, lives: list[frozenset[Life]]) -> bool:
        """Whether something of this visit, up to where the record is, can fail so often that the record does."""
        for do in self.so_far(number, life):
            if do.word in (Word.FAIL, Word.ACT) and do.times:
                return True
        here = self.next_of(number, life)
        if here is None or here.word is not Word.CHILDREN or here.keep or not life.begun:
            return False
        return any(_failed(child, life) for n in self.here(number, life) for child in lives[n])

    def here(self, number: int, life: Life) -> list[int]:
        """The children for which a record waits."""
        do = self.next_of(number, life)
        name, members = do.name if do is not None else "", self.members
        own = self.children[members[number].record]
        return [n for n in own if (members[n].of, members[n].family) == (name, life.families)]

    def descendants(self, number: int) -> list[int]:
        own = self.children[self.members[number].record]
        return [found for n in own for found in (n, *self.descendants(n))]

    # -- orders -------------------------------------------------------------------------------------------------

    def concerns(self, order: Order) -> bool:
        return not order.record or order.record in self.numbers

    def obeys(self, state: State, order: Order) -> State | None:
        """Where all can be after this order was answered as it was; None: it cannot have been answered so."""
        if not order.record:
            return self._of_ledger(state, order)
        number = self.numbers[order.record]
        halted = bool(state.halted & {"", self.members[number].workflow})
        found = {new for life in state.lives[number] for new in self.answers(number, life, halted, order)}
        after = _with(state, number, found)
        if after is None or order.refused or order.answered_at is None:
            return after
        after = self.later(after)  # the answer says where the record is once the order has been taken
        return _with(after, number, {life for life in after.lives[number] if self.can_read(number, life, order.answer)})

    def _of_ledger(self, state: State, order: Order) -> State | None:
        scope = order.what
        halted = state.halted | {scope} if order.verb == "halt" else state.halted
        if order.verb.startswith("resume"):
            halted = halted - {scope}
        concerned = [scope in ("", member.workflow) for member in self.members]
        if order.verb == "resume --cancelled":  # what another halt holds stays held
            concerned = [one and not halted & {"", self.members[n].workflow} for n, one in enumerate(concerned)]
        halt = {"halt": HELD, "resume --cancelled": RETURNS}.get(order.verb)
        if halt is None:
            return state._replace(halted=halted)
        lives = [
            frozenset(_halted(life, halt) for life in found) if mine else found
            for found, mine in zip(state.lives, concerned, strict=True)
        ]
        return State(tuple(lives), halted)

    def brought_back(self, state: State, order: Order) -> State:
        """``resume --cancelled`` has been answered: by now all are back, but for children without a parent."""

        def back(number: int, life: Life) -> Iterator[Life]:
            member = self.members[number]
            orphan = member.parent and any(not one.open for one in state.lives[self.numbers[member.parent]])
            if life.halt != RETURNS or order.what not in ("", member.workflow):
                yield life
            elif orphan:
                yield from (life, life._replace(halt=HELD), life._replace(halt=FREE))
            else:
                yield life._replace(halt=FREE)

        lives = (frozenset(new for life in found for new in back(n, life)) for n, found in enumerate(state.lives))
        return state._replace(lives=tuple(lives))

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
        held = halted or life.halt == HELD
        asks = do is not None and do.word is Word.ASK and not life.done and not life.rests
        in_doubt = (do is not None and do.word is Word.ACT and life.begun and not life.done) or life.undoing
        match order.verb:
            case "start":
                return [life] if life.there else [] if halted else [life._replace(there=True)]
            case "look":
                return [life] if life.there else []
            case "cancel" if life.open:
                if life.undoing:
                    return [life._replace(wish="cancel"), life]
                return [life._replace(wish=life.wish or "cancel")]
            case "cancel --undo" if life.there and not life.undoing:
                wished = life._replace(wish="undo")
                return [wished] if not life.end else [] if halted else [undoing(life)]
            case "signal" if life.open and not held:
                return [life._replace(signals=(*life.signals, (order.what, str(order.value))))]
            case "answer" if life.open and asks and not held:
                return [hears(life, str(order.value))]
            case "resolve" if life.open and in_doubt:
                return [life, life._replace(done=True), life._replace(begun=False)]
            case "move" if life.open and life.rests and not held:
                return [life._replace(rests=False, visit=life.visit + 1)]
            case "retry" if life.there and life.end != DONE and not halted:
                return [*self.tried_again(number, life)]
        return []

    def may_refuse(self, number: int, life: Life, halted: bool, order: Order) -> bool:
        """Whether an order may be refused that may as well be taken.

        A retry of what does not back off, of a child, and of what was taken back. An undo of what a halt holds, unless
        something of it is under way.
        """
        if order.verb == "retry":
            return life.open or bool(self.members[number].parent) or life.undoing
        return order.verb == "cancel --undo" and halted

    def tried_again(self, number: int, life: Life) -> Iterator[Life]:
        """A record is tried again: it goes on where it is. Children that failed are done again."""
        life = life._replace(end="", wish="", halt=FREE)
        yield life
        for place, do in enumerate(self.so_far(number, life)):
            if do.word is Word.CHILDREN:
                yield life._replace(place=place, begun=False, done=False)

    # -- what is seen -------------------------------------------------------------------------------------------

    def sees(self, state: State, happening: Happening) -> State | None:
        """Where all can be once this was seen; None: it cannot have happened."""
        number = self.numbers[happening.record]
        found = {new for life in state.lives[number] for new in self.seen(number, life, happening)}
        return _with(state, number, found)

    def seen(self, number: int, life: Life, happening: Happening) -> Iterator[Life]:
        do = self.next_of(number, life)
        match happening.kind:
            case "begins":
                here = do is not None and do.word is Word.ACT and do.name == happening.name
                if here and life.visit == happening.visit and self.may_begin(life):
                    yield life._replace(begun=True)
            case "begins to undo":
                if life.open and life.undoing and not life.wish and life.halt != HELD:
                    yield life
            case "passes":
                part, place = map(int, happening.name.split("."))
                here = (life.visit, life.part, life.place, life.done) >= (happening.visit, part, place, True)
                word = self.members[number].script.parts[part][place].word
                if word in (Word.CALL, Word.FAIL, Word.SLEEP) or (here and _heard(life, word, happening)):
                    yield life
            case _:
                yield life

    def may_begin(self, life: Life) -> bool:
        return life.open and not (life.done or life.rests or life.wish or life.undoing) and life.halt != HELD

    def can_read(self, number: int, life: Life, status: str) -> bool:
        """Whether people can see a record in this status."""
        if life.end or not life.there:
            return status == life.end
        if status in (RUNNING, PENDING):
            return status == RUNNING or (life.halt != HELD and not life.wish)
        do = self.next_of(number, life)
        acting = do is not None and do.word is Word.ACT
        if status == CANCELLED:
            return life.halt != FREE
        if status == ASKS:
            return acting or life.undoing or (do is not None and do.word is Word.ASK)
        slow = do is not None and do.word not in (Word.CALL, Word.FAIL, Word.ASK)
        turn = (life.part, life.place) == (0, 0) and bool(self.members[number].parent)
        return status == WAITING and life.halt != HELD and (slow or life.rests or life.undoing or turn)

    def rest(self, state: State, found: Mapping[str, Found]) -> str:
        """What is wrong with where all came to rest; empty: nothing is."""
        for number, member in enumerate(self.members):
            status, sentence = found[member.record].status, found[member.record].sentence
            fits = [life for life in state.lives[number] if self.rests(number, life, found[member.record], state)]
            if not fits:
                return f"{member.record} is {status} in the end, which it cannot be ({sentence})"
            state = state._replace(lives=_put(state.lives, number, frozenset(fits)))
        return ""

    def rests(self, number: int, life: Life, found: Found, state: State) -> bool:
        """Whether a record that can be here can have come to rest so."""
        if life.end or not life.there:
            return found.status == life.end
        if life.halt == HELD:
            return found.status == CANCELLED
        do = self.next_of(number, life)
        if found.why == "signal":
            waits = do is not None and do.word is Word.WAIT and not life.done and not life.wish
            return waits and all(name != do.name for name, _ in life.signals if do is not None)
        if found.why == "children":
            here = self.here(number, life)
            return life.begun and not life.done and any(one.open for n in here for one in state.lives[n])
        return found.why == "turn"


def _with(state: State, number: int, found: set[Life]) -> State | None:
    return state._replace(lives=_put(state.lives, number, frozenset(found))) if found else None


def _put(lives: tuple[frozenset[Life], ...], number: int, found: frozenset[Life]) -> tuple[frozenset[Life], ...]:
    return (*lives[:number], found, *lives[number + 1 :])


def _lets_go(parent: Life, child: Member) -> bool:
    """Whether a parent that is here does without this child."""
    return parent.families >= child.family and not (parent.open and parent.begun and not parent.done)


def _failed(child: Life, parent: Life) -> bool:
    """Whether a child counts as failed: also if a halt holds it, and not its parent."""
    return child.end in (ERROR, CANCELLED) or (child.open and child.halt == HELD and parent.halt == FREE)


def _counts(child: Life, parent: Life, *, keep: bool) -> bool:
    """Whether the parent need not wait for a child any more."""
    return child.end == DONE or (keep and _failed(child, parent))


def _halted(life: Life, halt: str) -> Life:
    return life._replace(halt=halt) if life.open and (halt == HELD or life.halt == HELD) else life


def _heard(life: Life, word: Word, happening: Happening) -> bool:
    if word not in (Word.WAIT, Word.ASK):
        return True
    return (happening.visit, happening.name, str(happening.value)) in life.heard


def hears(life: Life, value: str) -> Life:
    return life._replace(done=True, heard=(*life.heard, (life.visit, life.where, value)))


def undoing(life: Life) -> Life:
    return life._replace(end="", wish="", undoing=True, visit=life.visit + 1, begun=False, done=False, rests=False)
