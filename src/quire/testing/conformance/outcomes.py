"""Every outcome of a pass, by name."""

from __future__ import annotations

from quire.model.wait import On, Wait
from quire.rules.outcome import Broke, Done, Migrated, Next, Outcome, Saved, Stopped, Tried, Waits, Yielded

OUTCOMES: dict[str, Outcome] = {
    "next": Next("next", '{"a": 1}'),
    "rests": Next("rest", "{}", rests=True),
    "ends": Next("end", "{}", ends=True),
    "done": Done('"result"', "{}"),
    "waits": Waits((Wait(On.SIGNAL, "key", "paid", until=1e10),), '{"b": 2}'),
    "asks": Waits((Wait(On.QUESTION, "key", "ok?", about={"text": "ok?"}),), "{}"),
    "saved": Saved('{"c": 3}'),
    "migrated": Migrated('{"d": 4}', 2),
    "tried": Tried("a 429", 10.0),
    "broke": Broke("a bug"),
    "broke-undo": Broke("a bug", undo=True),
    "yielded": Yielded("its budget ends"),
    "stopped": Stopped("cancelled"),
    "stopped-undo": Stopped("cancelled", undo=True),
}
#: Those that leave the step, or the record, behind.
LEAVING = {name: OUTCOMES[name] for name in ("next", "rests", "ends", "done", "broke", "broke-undo", "stopped")}
#: Those after which the record would go on.
GOING_ON = {
    name: OUTCOMES[name] for name in ("next", "rests", "waits", "asks", "saved", "migrated", "tried", "yielded")
}
