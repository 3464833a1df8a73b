"""What the page says beside its figures: what a reader must know before comparing."""

from __future__ import annotations

HEAD = """\
# Benchmarks

This page is written by `make bench` (`bench/run.py`); nothing in it is typed by hand. All figures come from one run on
one machine, each with a process and an empty store of its own, the repetitions interleaved over the peers, after a
warm-up that is thrown away. A cell is the median, with the lowest and the highest repetition in brackets. The raw
figures, the versions of all packages and the settings are in [results.json](benchmarks/results.json).
"""

BARS = """\
"The best peer" and "every peer" are read strictly: of those on any store, queues among them, which do less than an
engine (see *Not alike*).
"""

WINS = """\
Medians of this run. A peer on SQLite or PostgreSQL is compared with Quire on the same store, others with Quire on
SQLite. Queues do less (see *Not alike*); they are listed all the same.
"""

LEADING = """\
What somebody gets who has changed no setting: a worker takes 100 records at once, an effect may take 30 s, and a
doubtful act waits for up to 60 s, unless its worker is known to be dead. The steps do something: a call to a service
that answers after 5 ms, and an effect. The sections below have settings chosen for steps that do nothing; they say what
the engine itself costs.
"""

#: By workload.
ABOUT = {
    "W0": """\
The service runs in another process. *Alone* is one record after the other on an idle worker, from its start to its
committed end: the call and the wait for two commits are in it.
""",
    "W12": """\
W8 with nothing changed: how long it takes after a kill until the acts that were under way are settled and all is done.
The clock runs from the start of the new process.
""",
    "W1": """\
CPU is of the whole call, enqueue and drain together: of the peer's own processes, and of the server that is its store.
A rate that is bound by CPU cannot exceed the cores of the machine divided by the sum of the two.
""",
    "W3": """\
Until the record's end is committed, or the result is there; see *Not alike*. *The end of the body* comes before that:
the code has run, and a crash at that moment may run it again. *Through the queue* is until a client that waits for the
result has it. The records come 20 to 30 ms apart, by lot, so that they keep no step with a peer that polls.
""",
    "W6": """\
A point is the median of 21 drains, in turn with drains of an empty ledger beside it, each ledger in a process that has
done nothing else; *against empty* is the median of the 21 pairs of drains that followed each other. The finished
records are copies, with their logs, of records that really ran, written by SQL and followed by VACUUM ANALYZE and a
checkpoint on PostgreSQL: rows and index entries are what the ledger writes itself, but fresh, without the bloat of a
long life.
""",
    "W7": """\
Statements are counted in the server's log: those that a client sent. *Woken* is from before the start in another
process to the step's run in the idle worker. *Import* is that of a program that uses the package: a bare
`import quire` loads almost nothing, so for Quire it is `from quire import Client, Run, Workflow, aopen, effect`. The
size is that of `pip install`, for Quire without extras, and without the bytecode that pip makes afterwards.
""",
    "W8": """\
The clock runs from the start of the new process, its imports included, until all records are done.
""",
    "W9": """\
All processes and the server share the cores of this machine. The clock runs from before the processes connect: for
Quire that is some 20 ms of CPU for each, two fifths of it the server's. The end is seen by a look every 20 ms whether
anything is left (Procrastinate and the engines: how much is left). *Busy* is how much of all processors the workers,
the server and the client used: what one worker leaves idle is all that more workers could gain. *By default* is Quire
with as many records at once as a worker takes if nobody says otherwise (100), where the bar is of 2,000. *Steps of 1 ms
of CPU* is what people start more processes for: Python uses one processor in each. There 2,000 records are drained,
and Quire is as by default.
""",
    "W10": """\
*When turns double*: 2 is linear, 4 is quadratic.
""",
    "W11": """\
Resident memory holds caches as well: on SQLite each of three connections keeps up to 32 MB of the file's pages, and
they fill while the file grows. What Python itself holds is told by the number of its objects.
""",
}

#: Whichever side it favours.
NOT_ALIKE = """\
- Queues have no step checkpoints: their W2 is a chain of jobs, each enqueued by the one before; their W4 is counted in
  the process (PgQueuer, Procrastinate) or gathered by the caller (Huey). That is less durable work than a step.
- The end of W1, W2 and W5 is seen by Quire when its worker's commit is acknowledged; by DBOS, Absurd, Procrastinate,
  PgQueuer and Huey by a look into the store every 5 ms; by LangGraph, Temporal, Celery and Prefect from results.
- PgQueuer writes completions in batches, or every 0.1 s: the end of its drain may wait for that timer.
- W3 is to the committed end for Quire, PgQueuer (told by its own NOTIFY) and Procrastinate (seen by looks half a
  millisecond apart), to the result for the engines, Huey and Celery.
- W3: DBOS and LangGraph start in the process, without a queue. The workers of Huey and Absurd poll every 10 ms, far
  more often than by default. Quire's client and worker share a process, and a start may be handed over within it.
- W8: Quire's steps act through an effect with a probe, so an act that happened is found and not repeated. A plain step
  of a peer has no probe; a user could write one.
- W8: how long a peer takes is mostly its timeout (Absurd's claim, Procrastinate's and PgQueuer's heartbeat and Celery's
  visibility 30 s, Temporal's activity 10 s). Quire sees that a worker of the same host is dead.
- W9: a slow peer drains 2,000 records, not 40,000.
- PostgreSQL, Redis, Temporal's and Prefect's server run on the same machine and take CPU from the peer; SQLite's work
  is done in the peer's own process.
"""

WHERE = """\
Measured by the run itself: W1 and W2 once more under a profiler (cProfile, in every thread), apart from the figures
above, because the profiler makes Python about twice as slow. Time in a function written in C counts for the module that
calls it, but for SQLite and sockets. A share is of the wall-clock time of the call, enqueue included; *waiting* is what
is left of it: the event loop's thread had nothing to do but wait for the store, the disk, or another thread.
"""
