"""Keeps a world in a file: one JSON document, written whole beside the old one and then put in its place."""

from __future__ import annotations

import base64
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from hectograph.core.people import CLIENT
from hectograph.drive.file import File, Revision
from hectograph.sheets.a1 import Box
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import Cell, CellError, Entered, Formula
from hectograph.sheets.reference import placed
from hectograph.world import World

FORMAT = 1


def save(world: World, path: Path) -> None:
    with world.lock:
        books = [shelf.current for shelf in world.library.shelves.values()]
        document: dict[str, Any] = {
            "format": FORMAT,
            "account": world.account,
            "root": world.drive.root,
            "used": sorted(world.drive.used),
            "generated": sorted(world.drive.generated),
            "changes": [(n, file_id, at.isoformat()) for n, file_id, at in world.drive.changes],
            "files": [_file(file) for file in world.drive.files.values()],
            "outbox": world.outgoing.dump(),
            "people": world.people.dump(),
            "channels": world.channels.dump(),
            "services": {version: held for version, service in world.services.items() if (held := service.dump())},
        }
    # Published versions never change, so writing them down keeps nobody waiting.
    document["books"] = [_book(book) for book in books]
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    beside = path.with_name(path.name + ".new")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def load(world: World, path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise ValueError(f"{path}: format {document.get('format')!r} found, {FORMAT} expected")
    drive = world.drive
    drive.root = document["root"]
    drive.used = set(document["used"])
    drive.generated = set(document["generated"])
    drive.changes = [(n, file_id, datetime.fromisoformat(at)) for n, file_id, at in document["changes"]]
    for held in document["files"]:
        file = _read_file(held)
        drive.files[file.file_id] = file
    world.outgoing.load(document.get("outbox", []))
    if "people" in document:
        world.people.load(document["people"])
    world.channels.load(document.get("channels", []))
    for version, held in document.get("services", {}).items():
        world.services[version].load(held)
    for held in document["books"]:
        world.library.add(_read_book(held))


def _bytes(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _file(file: File) -> dict[str, Any]:
    return {
        "id": file.file_id,
        "name": file.name,
        "mimeType": file.mime_type,
        "parents": file.parents,
        "created": file.created.isoformat(),
        "modified": file.modified.isoformat(),
        "owner": file.owner,
        "version": file.version,
        "content": _bytes(file.content),
        "trashed": file.trashed,
        "more": file.more,
        "apps": file.apps,
        "permissions": file.permissions,
        "comments": file.comments,
        "revisions": [
            {"id": r.revision_id, "at": r.at.isoformat(), "content": _bytes(r.content), "type": r.mime_type}
            for r in file.revisions
        ],
    }


def _read_file(held: dict[str, Any]) -> File:
    content = held["content"]
    return File(
        held["id"],
        held["name"],
        held["mimeType"],
        held["parents"],
        datetime.fromisoformat(held["created"]),
        datetime.fromisoformat(held["modified"]),
        held["owner"],
        held["version"],
        None if content is None else base64.b64decode(content),
        held["trashed"],
        {name: value for name, value in held["more"].items() if name != "appProperties"},
        held.get("apps") or {CLIENT: held["more"].get("appProperties", {})},
        held["permissions"],
        held["comments"],
        [
            Revision(r["id"], datetime.fromisoformat(r["at"]), base64.b64decode(r["content"]), r["type"])
            for r in held["revisions"]
        ],
    )


def _value(value: Entered, row: int) -> Any:
    if isinstance(value, Formula):
        return {"=": placed(value, row)}
    if isinstance(value, CellError):
        return {"#": value.code, "text": value.text}
    return value


def _read_value(held: Any) -> Entered:
    if isinstance(held, dict):
        return Formula(held["="]) if "=" in held else CellError(held["#"], held["text"])
    return float(held) if isinstance(held, int) and not isinstance(held, bool) else held


def _cell(cell: Cell, row: int) -> Any:
    """The bare value where a cell is nothing else: most are."""
    if cell.format is None and cell.note is None and cell.extra is None:
        return [_value(cell.value, row)]
    return [_value(cell.value, row), cell.format, cell.note, cell.extra]


def _book(book: Book) -> dict[str, Any]:
    return {
        "id": book.book_id,
        "version": book.version,
        "minted": book.minted,
        "properties": book.properties,
        "named": book.named,
        "metadata": list(book.metadata.values()),
        "sheets": [
            {
                "properties": sheet.properties,
                "merges": [(m.top, m.bottom, m.left, m.right) for m in sheet.merges],
                "rowProperties": sheet.row_properties,
                "columnProperties": sheet.column_properties,
                "extras": sheet.extras,
                "rows": [{str(c): _cell(x, at) for c, x in row.items()} for at, row in enumerate(sheet.rows)],
            }
            for sheet in book.all_sheets()
        ],
    }


def _read_book(held: dict[str, Any]) -> Book:
    book = Book(held["id"], held["properties"]["title"], 0)
    book.version = held["version"]
    book.minted = held["minted"]
    book.properties = held["properties"]
    book.named = held["named"]
    book.metadata = {item["metadataId"]: item for item in held["metadata"]}
    for given in held["sheets"]:
        sheet = Sheet(given["properties"]["sheetId"], given["properties"]["title"])
        sheet.properties = given["properties"]
        sheet.merges = [Box(*m) for m in given["merges"]]
        sheet.row_properties = {int(k): v for k, v in given["rowProperties"].items()}
        sheet.column_properties = {int(k): v for k, v in given["columnProperties"].items()}
        sheet.extras = given["extras"]
        for at, row in enumerate(given["rows"]):
            for c, x in row.items():
                sheet.put(at, int(c), Cell(_read_value(x[0]), *x[1:]))
        book.add(sheet)
    return book
