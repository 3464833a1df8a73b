"""The Celery application: imported by the adapter and by the worker that it starts."""

from __future__ import annotations

import os
import time

from celery import Celery

URL = os.environ["BENCH_REDIS"]
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=4,
    task_default_queue="work",
    result_expires=3600,
    broker_transport_options={"visibility_timeout": 30},
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task
def one(number: int) -> int:
    return number


@app.task
def total(parts: list[int]) -> int:
    return sum(parts)


@app.task
def sleeper(seconds: float) -> int:
    time.sleep(seconds)
    return 1


@app.task
def stamped() -> float:
    with open(os.environ["BENCH_STAMPS"], "a") as file:
        file.write(f"{time.monotonic()}\n")
    return 1.0


@app.task
def journey(record: int, steps: int, seconds: float) -> int:
    file = os.open(os.environ["BENCH_JOURNAL"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for step in range(steps):
        time.sleep(seconds)
        os.write(file, f"{record} {step}\n".encode())
    os.close(file)
    return 1
