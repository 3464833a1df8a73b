#!/usr/bin/env python3
"""Checks an evidence pack without Quire: python3 check.py [PACK] [--fingerprint SHA256] [--keyring KEYS.json]

Uses nothing but Python's standard library. Says for every file whether it is the one that the manifest lists, for every
record whether its log is an unbroken chain of hashes that ends where the record says, and for every receipt whether an
act of the log stands behind it. Exit code 0: all is in order. 1: something is not; the first line names what. 2: this
is no evidence pack.

Whoever can rewrite the whole pack can also rewrite the manifest: compare the fingerprint that is printed with the one
that was noted when the pack was made. Receipts are signed with a key that is not in the pack; with the owner's keyring
(a JSON object of key ids and hex keys) the signatures are checked too.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    #: Of each record the number and the hash of its last line.
    Ends = dict[str, tuple[int, str]]
    #: Of each record and effect what the log tells of it.
    Acts = dict[tuple[str, str], set[str]]


def sha256_of(path: str) -> str:
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            whole.update(part)
    return whole.hexdigest()


def rows(path: str, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    name = os.path.basename(path)
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line)
            except ValueError:
                problems.append(f"{name} line {number}: it is not JSON")


def chained(previous: str, event: dict[str, Any]) -> str:
    parts = [
        previous,
        event["record_id"],
        event["n"],
        event["version"],
        repr(event["at"]),
        event["kind"],
        event["body"],
    ]
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def key_of(*parts: object) -> str:
    return "".join(f"{len(str(part))}:{part}" for part in parts)


def signature(key: bytes, receipt: dict[str, Any]) -> str:
    value = hashlib.sha256(receipt["value"].encode("utf-8", "surrogatepass")).hexdigest()
    names = ["key", "record_id", "step", "visit", "name", "kind", "fn", "args_hash"]
    parts = [receipt[name] for name in names] + [value, receipt["nonce"], receipt["key_id"]]
    if receipt.get("act_key"):
        parts += [receipt["act_key"], receipt["prepared"], receipt["actor"]]
    return hmac.new(key, key_of(*parts).encode(), hashlib.sha256).hexdigest()


def check_files(pack: str, manifest: dict[str, Any], problems: list[str]) -> None:
    for entry in manifest["files"]:
        path = os.path.join(pack, entry["name"])
        if not os.path.isfile(path):
            problems.append(f"{entry['name']}: the manifest lists it, but it is not there")
        elif sha256_of(path) != entry["sha256"]:
            problems.append(f"{entry['name']}: its SHA-256 is not the one in the manifest")
    listed = {entry["name"] for entry in manifest["files"]} | {"manifest.json"}
    others = [name for name in sorted(os.listdir(pack)) if name not in listed and not name.startswith((".", "__"))]
    problems += [f"{name}: the manifest does not list it" for name in others]


def check_chains(pack: str, problems: list[str]) -> tuple[Ends, Acts]:
    ends: Ends = {}
    acts: Acts = {}
    for number, event in rows(os.path.join(pack, "events.jsonl"), problems):
        record_id = event["record_id"]
        n, previous = ends.get(record_id, (0, ""))
        where = f"events.jsonl line {number}: line {event['n']} of record {record_id!r}"
        if event["n"] != n + 1:
            problems.append(f"{where} does not follow line {n}")
        elif event["hash"] != chained(previous, event):
            problems.append(f"{where} is not what its hash says")
        ends[record_id] = (event["n"], event["hash"])
        if event["kind"].startswith("effect."):
            body = json.loads(event["body"])
            acts.setdefault((record_id, body.get("key")), set()).add(event["kind"])
    return ends, acts


def check_records(pack: str, ends: Ends, problems: list[str]) -> None:
    seen: set[str] = set()
    for number, record in rows(os.path.join(pack, "records.jsonl"), problems):
        record_id = record["record_id"]
        seen.add(record_id)
        if ends.get(record_id) != (record["log_seq"], record["log_hash"]):
            had = "has no lines" if record_id not in ends else f"ends at line {ends[record_id][0]}"
            problems.append(
                f"records.jsonl line {number}: the log of {record_id!r} {had}, "
                f"but its record says that it ends at line {record['log_seq']}"
            )
    problems += [f"events.jsonl: {other!r} has a log, but is not a record" for other in sorted(set(ends) - seen)]


def check_receipts(pack: str, acts: Acts, keys: dict[str, str] | None, problems: list[str]) -> int:
    signed = 0
    for number, receipt in rows(os.path.join(pack, "receipts.jsonl"), problems):
        if receipt["kind"] not in ("once", "undo") or receipt["stage"] not in ("done", "undone"):
            continue
        where = f"receipts.jsonl line {number}: the receipt of {receipt['name']!r} of {receipt['record_id']!r}"
        if "effect.done" not in acts.get((receipt["record_id"], receipt["key"]), ()):
            problems.append(f"{where} has no line in the log")
        if keys is not None:
            key = keys.get(receipt["key_id"])
            if key is None or not hmac.compare_digest(signature(bytes.fromhex(key), receipt), receipt["signature"]):
                problems.append(f"{where} is not signed by a key of the keyring")
            signed += 1
    return signed


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks an evidence pack without Quire.")
    parser.add_argument("pack", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--fingerprint", help="SHA-256 of manifest.json as it was noted when the pack was made")
    parser.add_argument("--keyring", help="JSON file with the owner's keys, to check the signatures of receipts too")
    options = parser.parse_args()
    try:
        with open(os.path.join(options.pack, "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        keys = None
        if options.keyring:
            with open(options.keyring, encoding="utf-8") as file:
                keys = json.load(file)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"this is not an evidence pack: {error}\n")
        return 2
    problems: list[str] = []
    fingerprint = sha256_of(os.path.join(options.pack, "manifest.json"))
    if options.fingerprint and options.fingerprint.lower() != fingerprint:
        problems.append(f"manifest.json: its fingerprint is {fingerprint}, not {options.fingerprint}")
    ends: Ends = {}
    signed = 0
    try:
        ends, acts = check_chains(options.pack, problems)
        check_records(options.pack, ends, problems)
        signed = check_receipts(options.pack, acts, keys, problems)
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        problems.append(f"the pack cannot be read to its end: {type(error).__name__}: {error}")
    check_files(options.pack, manifest, problems)
    for problem in problems[:100]:
        sys.stdout.write(f"WRONG {problem}\n")
    if problems:
        sys.stdout.write(f"{len(problems)} problems found.\n")
        return 1
    lines = sum(n for n, _ in ends.values())
    sys.stdout.write(f"In order: {len(ends)} records, {lines} lines, {len(manifest['files'])} files.\n")
    sentence = (
        f"{signed} signatures checked." if keys is not None else "Signatures were not checked: no keyring was given."
    )
    sys.stdout.write(f"{sentence}\nFingerprint: {fingerprint}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
