"""The Sheets v4 API over a world: what each call does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core import fieldmask
from hectograph.core.discovery import Method, api
from hectograph.core.error import ApiError, Invalid, invalid, not_found
from hectograph.core.faults import Call
from hectograph.core.fieldmask import Mask
from hectograph.core.http import Request, Response
from hectograph.core.quota import Limit
from hectograph.core.service import MethodCall, Service
from hectograph.drive.file import APPS, FOLDER, SHORTCUT, SPREADSHEET
from hectograph.sheets import a1
from hectograph.sheets.batch import Batch
from hectograph.sheets.book import Book
from hectograph.sheets.editor import SheetsEditor
from hectograph.sheets.filters import matches, metadata
from hectograph.sheets.requests.metadata import metadata_json
from hectograph.sheets.requests.sheet import free_title, properties_json, twin_of
from hectograph.sheets.spreadsheet import make_book, spreadsheet_json
from hectograph.sheets.values import Values, truth

if TYPE_CHECKING:
    from hectograph.world import World

#: Google's API, as its discovery document describes it.
API = api("sheets.v4")


class SheetsApi(Service):
    version = "sheets.v4"
    limits: ClassVar = {"read": Limit(per_user=60, per_project=300), "write": Limit(per_user=60, per_project=300)}

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        world.drive.editors[SPREADSHEET] = SheetsEditor(world.library, world.now)

    def plays(self, name: str) -> bool:
        return True  # all of them

    def handle(self, call: MethodCall) -> Response:
        """Answer a call. A read takes no lock: it is served from a published version of the book."""
        file = self.world.drive.files.get(call.parts.get("spreadsheetId", ""))
        if file is not None and file.mime_type != SPREADSHEET:
            raise _other_kind(file.mime_type)
        if file is None:
            self._check_foreign(call.parts.get("spreadsheetId", ""))
        self.check(call)
        mask = self.wanted(call)
        answer = self._run(call.method, call.parts, call.request, call.seen, mask)
        return Response.of(fieldmask.chosen(answer, mask) if mask else answer)

    def wanted(self, call: MethodCall) -> Mask:
        text = call.request.one("fields")
        if re.search(r"\s", text):
            raise self.bad_field(text)
        return super().wanted(call)

    def _check_foreign(self, book_id: str) -> None:
        """Refuse a book that is somebody else's: its id is one of Google's, and it was never here."""
        world = self.world
        minted = re.fullmatch(r"1[A-Za-z0-9_-]{43}", book_id) is not None
        if minted and world.switches.foreign_ids_exist and book_id not in world.drive.used:
            raise ApiError.sheets(403, "The caller does not have permission")

    def _read(self, book_id: str, call: Call) -> Book:
        """The version that a read is served from: the newest, unless a fault says otherwise."""
        shelf = self.world.library.shelf(book_id)
        rule = self.world.faults.take(call, "stale_read")
        if rule is None:
            return shelf.current
        if "seconds" in rule.given:
            return shelf.as_of(self.world.now() - timedelta(seconds=float(rule.given["seconds"])))
        return shelf.version(shelf.current.version - int(rule.given.get("versions", 1)))

    def _change(self, book_id: str, work: Callable[[Book], Any], *, keep_partial: bool = False) -> Any:
        world = self.world
        with world.lock:
            before = world.library.shelf(book_id).current
            try:
                return world.library.change(book_id, work, keep_partial=keep_partial)
            finally:
                if world.library.shelf(book_id).current is not before:
                    world.touched(book_id)

    def _run(self, method: Method, parts: Mapping[str, str], request: Request, call: Call, mask: Mask) -> Any:
        world = self.world
        now = world.now
        book_id = parts.get("spreadsheetId", "")
        query = request.flat()
        text = parts.get("range", "")

        def body(message: str, at: str = "", also: frozenset[str] = frozenset()) -> Any:
            return API.schema.check(message, request.json(), at, also=also)

        def read() -> Values:
            return Values(self._read(book_id, call), now)

        match method.name.removeprefix("spreadsheets."):
            case "create":
                return self._create(body("Spreadsheet", "spreadsheet"))
            case "get":
                return self._get(book_id, request, call, mask)
            case "getByDataFilter":
                return self._get_by_filter(book_id, body("GetSpreadsheetByDataFilterRequest"), call, mask)
            case "batchUpdate":
                return self.batch_update(book_id, self._batch_body(request), call)
            case "developerMetadata.get":
                return self._metadata(self._read(book_id, call), parts["metadataId"])
            case "developerMetadata.search":
                return self._search(self._read(book_id, call), body("SearchDeveloperMetadataRequest"))
            case "sheets.copyTo":
                return self._copy_to(book_id, parts["sheetId"], body("CopySheetToAnotherSpreadsheetRequest"))
            case "values.get":
                return read().get(text, query)
            case "values.batchGet":
                return read().batch_get(request.query.get("ranges", []), query)
            case "values.batchGetByDataFilter":
                return read().batch_get_by_filter(body("BatchGetValuesByDataFilterRequest"))
            case "values.update":
                given = body("ValueRange", "data")
                return self._change(book_id, lambda book: Values(book, now).update(text, given, query))
            case "values.append":
                given = body("ValueRange", "data")
                return self._append(book_id, text, given, query)
            case "values.batchUpdate":
                given = body("BatchUpdateValuesRequest")
                partial = not world.switches.values_batch_atomic
                return self._change(book_id, lambda book: Values(book, now).batch_update(given), keep_partial=partial)
            case "values.batchUpdateByDataFilter":
                given = body("BatchUpdateValuesByDataFilterRequest")
                return self._change(book_id, lambda book: Values(book, now).batch_update_by_filter(given))
            case "values.clear":
                body("ClearValuesRequest")
                return self._change(book_id, lambda book: Values(book, now).clear(text))
            case "values.batchClear":
                given = body("BatchClearValuesRequest")
                return self._change(book_id, lambda book: Values(book, now).batch_clear(given.get("ranges", [])))
            case _:
                given = body("BatchClearValuesByDataFilterRequest")
                return self._change(book_id, lambda book: Values(book, now).batch_clear_by_filter(given))

    def _append(self, book_id: str, text: str, given: Any, query: dict[str, str]) -> Any:
        world = self.world
        if not world.switches.append_sees_stale_grid:
            return self._change(book_id, lambda book: Values(book, world.now).append(text, given, query))

        def stale(book: Book) -> Any:
            # The place is found in the version before this one, as concurrent appends may find it.
            past = world.library.shelf(book_id).past
            answer = Values((past[-1][1] if past else book).fork(), world.now).append(text, given, query)
            return {
                **answer,
                "updates": Values(book, world.now).update(answer["updates"]["updatedRange"], given, query),
            }

        return self._change(book_id, stale)

    def _create(self, given: dict[str, Any]) -> Any:
        world = self.world
        with world.lock:
            book_id = world.drive.new_id(native=True)
            try:
                book = make_book(book_id, given, 0)
            except Invalid as error:
                raise invalid(str(error)) from error
            world.library.add(book)
            world.drive.adopt(book_id, book.properties["title"], SPREADSHEET)
            world.dirty()
            return spreadsheet_json(book, world.now, world.account)

    def _get(self, book_id: str, request: Request, call: Call, mask: Mask) -> Any:
        book = self._read(book_id, call)
        try:
            ranges = [a1.parse(text, book).rect for text in request.query.get("ranges", [])]
            values = Values(book, self.world.now)
            for rect in ranges:
                values.inside(book.sheets[rect.sheet_id], rect)
        except Invalid as error:
            raise invalid(str(error)) from error
        return spreadsheet_json(
            book,
            self.world.now,
            self.world.account,
            ranges=ranges,
            grid_data=request.flag("includeGridData"),
            mask=mask,
        )

    def _get_by_filter(self, book_id: str, given: dict[str, Any], call: Call, mask: Mask) -> Any:
        book = self._read(book_id, call)
        try:
            found = [rect for wanted in given.get("dataFilters", []) for rect in matches(book, wanted, noun="sheet")]
            values = Values(book, self.world.now)
            ranges: list[a1.Rect] = []
            for rect in found:
                values.inside(book.sheets[rect.sheet_id], rect)
                if rect not in ranges:
                    ranges.append(rect)
        except Invalid as error:
            raise invalid(str(error)) from error
        return spreadsheet_json(
            book,
            self.world.now,
            self.world.account,
            ranges=ranges,
            grid_data=given.get("includeGridData", False),
            mask=mask,
        )

    def _batch_body(self, request: Request) -> Any:
        ignored = (
            frozenset({"writeControl", "write_control"}) if self.world.switches.write_control_ignored else frozenset()
        )
        return API.schema.check("BatchUpdateSpreadsheetRequest", request.json(), also=ignored)

    def batch_update(self, book_id: str, given: dict[str, Any], call: Call) -> Any:
        world = self.world
        requests = given.get("requests", [])
        ghosts = set(world.ghosts.get(book_id, ()))
        race = world.faults.active(call, "race")

        def work(book: Book) -> dict[str, Any]:
            batch = Batch(book, world.now, world.account, world.switches, ghosts)
            batch.racing = race is not None
            replies = batch.run(requests)
            if race is not None and batch.raced:
                world.faults.spend(race)
            gone = {name for name in batch.released if all(n["name"].casefold() != name for n in book.named.values())}
            if gone and world.faults.take(call, "ghost_name") is not None:
                world.ghosts.setdefault(book_id, set()).update(gone)
            answer: dict[str, Any] = {"spreadsheetId": book_id, "replies": replies}
            if truth(given.get("includeSpreadsheetInResponse")):
                book.memo.clear()
                answer["updatedSpreadsheet"] = self._included(book, given)
            return answer

        return self._change(book_id, work)

    def _included(self, book: Book, given: dict[str, Any]) -> Any:
        try:
            ranges = [a1.parse(text, book).rect for text in given.get("responseRanges", [])]
        except Invalid as error:
            raise invalid(str(error)) from error
        return spreadsheet_json(
            book,
            self.world.now,
            self.world.account,
            ranges=ranges,
            grid_data=given.get("responseIncludeGridData", False),
        )

    def _metadata(self, book: Book, text: str) -> Any:
        item = book.metadata.get(int(text)) if text.isdigit() else None
        if item is None:
            raise not_found()
        return metadata_json(item)

    def _search(self, book: Book, given: dict[str, Any]) -> Any:
        out: dict[int, dict[str, Any]] = {}
        try:
            for wanted in given.get("dataFilters", []):
                for item in metadata(book, wanted):
                    held = out.setdefault(
                        item["metadataId"], {"developerMetadata": metadata_json(item), "dataFilters": []}
                    )
                    held["dataFilters"].append(wanted)
        except Invalid as error:
            raise invalid(str(error)) from error
        return {"matchedDeveloperMetadata": list(out.values())} if out else {}

    def _copy_to(self, book_id: str, sheet: str, given: dict[str, Any]) -> Any:
        world = self.world
        source = world.library.shelf(book_id).current
        to = given.get("destinationSpreadsheetId", "")
        try:
            held = source.sheet(int(sheet))
        except (Invalid, ValueError) as error:
            raise invalid(f"The sheet ({sheet}) does not exist.") from error

        def work(book: Book) -> dict[str, Any]:
            twin = twin_of(book, held, book.mint(), free_title(book, f"Copy of {held.title}"))
            book.add(twin)
            try:
                book.check_size()
            except Invalid as error:
                raise invalid(str(error)) from error
            return properties_json(book, twin)

        return self._change(to, work)


def _other_kind(mime_type: str) -> ApiError:
    """What Sheets says about a file that is no spreadsheet of its own."""
    if "spreadsheetml" in mime_type or mime_type == "application/vnd.ms-excel":
        text = "This operation is not supported for this document. The document must not be an Office file."
        return ApiError.sheets(400, text, status="FAILED_PRECONDITION")
    if mime_type.startswith(APPS) and mime_type not in {FOLDER, SHORTCUT}:
        return not_found()
    return ApiError.sheets(400, "Request contains an invalid argument.")
