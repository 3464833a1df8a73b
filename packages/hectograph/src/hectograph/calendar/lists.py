"""Calendars themselves, the list of them that each account has, and who may do what on them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.calendar.event import Fields, refused, zone
from hectograph.calendar.store import ROLES, Calendar, calendar_json, entry_json
from hectograph.core.http import Response
from hectograph.core.service import MethodCall, Play

if TYPE_CHECKING:
    from hectograph.calendar.api import CalendarApi


#: What stands for everybody in a rule for all.
_EVERYBODY = "__public_principal__@public.calendar.google.com"


class Lists:
    def __init__(self, api: CalendarApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            **{f"calendars.{name}": play for name, play in self._of_calendars().items()},
            **{f"calendarList.{name}": play for name, play in self._of_lists().items()},
            **{f"acl.{name}": play for name, play in self._of_rules().items()},
        }

    def _of_calendars(self) -> Mapping[str, Play]:
        return {
            "get": lambda call: self._json(self.api.calendar(call)),
            "insert": self.insert_calendar,
            "patch": self.change_calendar,
            "update": self.change_calendar,
            "delete": self.delete_calendar,
            "clear": self.clear_calendar,
        }

    def _of_lists(self) -> Mapping[str, Play]:
        return {
            "list": self.list_calendars,
            "get": self.get_entry,
            "insert": self.change_entry,
            "patch": self.change_entry,
            "update": self.change_entry,
            "delete": self.delete_entry,
        }

    def _of_rules(self) -> Mapping[str, Play]:
        return {
            "list": self.list_rules,
            "get": self.get_rule,
            "insert": self.put_rule,
            "patch": self.put_rule,
            "update": self.put_rule,
            "delete": self.delete_rule,
        }

    def _json(self, calendar: Calendar) -> Fields:
        return calendar_json(calendar, bool(self.api.world.switches["calendar_data_owner"]))

    def _entry(self, calendar: Calendar, account: str) -> Fields:
        return entry_json(calendar, account, bool(self.api.world.switches["calendar_data_owner"]))

    def insert_calendar(self, call: MethodCall) -> Any:
        given = call.body(loose=True)
        if not given.get("summary"):
            raise refused("Missing title.", "required")
        self._check_zone(given)
        return self._json(self.api.store.add(call.caller.email.lower(), given))

    def _check_zone(self, given: Fields) -> None:
        if given.get("timeZone") and zone(given["timeZone"]) is None:
            raise refused("Invalid time zone.")

    def change_calendar(self, call: MethodCall) -> Any:
        calendar = self.api.calendar(call, "owner")
        given = call.body(loose=True)
        self._check_zone(given)
        if call.name == "calendars.update" and not given.get("summary"):
            raise refused("Missing title.", "required")
        calendar.summary = given.get("summary", calendar.summary)
        calendar.time_zone = given.get("timeZone", calendar.time_zone)
        calendar.description = given.get("description", calendar.description)
        calendar.location = given.get("location", calendar.location)
        calendar.updated = self.api.store.moment()
        return self._json(calendar)

    def delete_calendar(self, call: MethodCall) -> Any:
        calendar = self.api.calendar(call, "owner")
        if calendar.primary:
            raise self.api.refuse(400, "Cannot delete the primary calendar.", "cannotDeletePrimaryCalendar")
        del self.api.store.held[calendar.calendar_id]
        return Response(204)

    def clear_calendar(self, call: MethodCall) -> Any:
        calendar = self.api.calendar(call, "owner")
        if not calendar.primary:
            raise self.api.refuse(400, "Cannot clear a secondary calendar.", "invalid")
        calendar.events.clear()
        calendar.updated = self.api.store.moment()
        return Response(204)

    def list_calendars(self, call: MethodCall) -> Any:
        account = call.caller.email.lower()
        shown_ones = [self._entry(one, account) for one in self.api.store.listed(account)]
        least = call.text("minAccessRole")
        if least:
            shown_ones = [one for one in shown_ones if ROLES.index(one["accessRole"]) >= ROLES.index(least)]
        if not call.flag("showHidden"):
            shown_ones = [one for one in shown_ones if not one.get("hidden")]
        digest = hashlib.sha1(repr(shown_ones).encode()).hexdigest()[:16]
        return {
            "kind": "calendar#calendarList",
            "etag": f'"{digest}"',
            "nextSyncToken": f"list-{self.api.store.changes}",
            "items": shown_ones,
        }

    def get_entry(self, call: MethodCall) -> Any:
        return self._entry(self._on_list(call), call.caller.email.lower())

    def _on_list(self, call: MethodCall) -> Calendar:
        account = call.caller.email.lower()
        found = self.api.store.find(call.parts["calendarId"], account)
        if found is None or not any(found.calendar_id == one.calendar_id for one in self.api.store.listed(account)):
            raise self.api.refuse(404, "Not Found", "notFound")
        return found

    def change_entry(self, call: MethodCall) -> Any:
        account, given = call.caller.email.lower(), call.body(loose=True)
        if call.name == "calendarList.insert":
            found = self.api.store.find(str(given.pop("id", "")), account)
            if found is None:
                raise self.api.refuse(404, "Not Found", "notFound")
        else:
            found = self._on_list(call)
        settable = "summaryOverride colorId backgroundColor foregroundColor hidden selected defaultReminders"
        new = {key: value for key, value in given.items() if key in {*settable.split(), "notificationSettings"}}
        found.listed[account] = {**found.listed.get(account, {}), **new}
        return self._entry(found, account)

    def delete_entry(self, call: MethodCall) -> Any:
        found, account = self._on_list(call), call.caller.email.lower()
        if found.primary:
            raise self.api.refuse(400, "Cannot remove the primary calendar.", "invalid")
        found.listed.pop(account, None)
        return Response(204)

    def list_rules(self, call: MethodCall) -> Any:
        calendar = self.api.calendar(call, "owner")
        items = [self._rule(key, role) for key, role in self._rules(calendar).items()]
        return {"kind": "calendar#acl", "etag": '"acl"', "nextSyncToken": "acl", "items": items}

    def _rules(self, calendar: Calendar) -> dict[str, str]:
        return {f"user:{calendar.owner}": "owner", **calendar.rules}

    def _rule(self, key: str, role: str) -> Fields:
        kind, _, value = key.partition(":")
        scope = {"type": kind, "value": value or _EVERYBODY}
        number = 0 if role == "owner" else int(hashlib.sha1((key + role).encode()).hexdigest()[:12], 16)
        etag = f'"{number:020d}"'
        return {"kind": "calendar#aclRule", "etag": etag, "id": key, "scope": scope, "role": role}

    def get_rule(self, call: MethodCall) -> Any:
        key, rules = call.parts["ruleId"], self._rules(self.api.calendar(call, "owner"))
        if key not in rules:
            raise self.api.refuse(404, "Not Found", "notFound")
        return self._rule(key, rules[key])

    def put_rule(self, call: MethodCall) -> Any:
        calendar, given = self.api.calendar(call, "owner"), call.body(loose=True)
        scope = given.get("scope", {})
        key = call.parts.get("ruleId") or ":".join(filter(None, (scope.get("type"), scope.get("value", "").lower())))
        role = given.get("role")
        if not key or role not in ROLES:
            raise refused("Invalid scope value." if not key else "Invalid role.")
        calendar.rules[key] = role
        kind, _, email = key.partition(":")
        if kind == "user" and email:
            calendar.listed.setdefault(email, {})
        return self._rule(key, role)

    def delete_rule(self, call: MethodCall) -> Any:
        calendar, key = self.api.calendar(call, "owner"), call.parts["ruleId"]
        if calendar.rules.pop(key, None) is None:
            raise self.api.refuse(404, "Not Found", "notFound")
        calendar.listed.pop(key.partition(":")[2], None)
        return Response(204)
