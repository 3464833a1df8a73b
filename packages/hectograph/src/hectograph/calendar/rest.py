"""Free and busy times, colours and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from hectograph.calendar import listing
from hectograph.calendar.event import Fields, empty_range, zone
from hectograph.core.clock import stamp
from hectograph.core.service import MethodCall, Play

if TYPE_CHECKING:
    from hectograph.calendar.api import CalendarApi

#: Which colours the numbers of ``colorId`` mean.
_COLORS = {
    "calendar": (
        "ac725e d06b64 f83a22 fa573c ff7537 ffad46 42d692 16a765 7bd148 b3dc6c fbe983 fad165 92e1c0 9fe1e7 9fc6e7 "
        "4986e7 9a9cff b99aff c2c2c2 cabdbf cca6ac f691b2 cd74e6 a47ae2"
    ),
    "event": "a4bdfc 7ae7bf dbadff ff887c fbd75b ffb878 46d6db e1e1e1 5484ed 51b749 dc2127",
}


class Rest:
    def __init__(self, api: CalendarApi) -> None:
        self.api = api

    def methods(self) -> Mapping[str, Play]:
        return {
            "freebusy.query": self.free_busy,
            "colors.get": self.colors,
            "settings.list": self.settings,
            "settings.get": self.setting,
        }

    def free_busy(self, call: MethodCall) -> Any:
        given = call.body(loose=True)
        low, high = (listing.bound(str(given.get(name, "")), name) for name in ("timeMin", "timeMax"))
        if high <= low:
            raise empty_range()
        account = call.caller.email.lower()
        where = zone(given.get("timeZone") or "UTC") or UTC
        found: Fields = {}
        for one in given.get("items", []):
            calendar = self.api.store.find(one["id"], account)
            if calendar is None:
                found[one["id"]] = {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
            else:
                found[one["id"]] = {"busy": listing.busy(self.api, calendar, low, high, where)}
        out = {"kind": "calendar#freeBusy", "timeMin": stamp(low), "timeMax": stamp(high), "calendars": found}
        return out if "groups" not in given else {**out, "groups": {}}

    def colors(self, call: MethodCall) -> Any:
        return {"kind": "calendar#colors", "updated": "2012-02-14T00:00:00.000Z"} | {
            name: {
                str(n + 1): {"background": f"#{word}", "foreground": "#1d1d1d"} for n, word in enumerate(words.split())
            }
            for name, words in _COLORS.items()
        }

    def _settings(self, call: MethodCall) -> dict[str, str]:
        home = self.api.store.primary(call.caller.email).time_zone
        american = home.startswith("America/")
        return {
            "autoAddHangouts": "true",
            "defaultEventLength": "60",
            "dateFieldOrder": "MDY" if american else "DMY",
            "weekStart": "0" if american else "1",
            "format24HourTime": "false" if american else "true",
            "hideInvitations": "false",
            "hideInvitationsSetting": "NONE",
            "locale": "en",
            "remindOnRespondedEventsOnly": "false",
            "showDeclinedEvents": "true",
            "timezone": home,
            "useKeyboardShortcuts": "true",
            "hideWeekends": "false",
        }

    def settings(self, call: MethodCall) -> Any:
        items = [self._setting(key, value) for key, value in self._settings(call).items()]
        return {"kind": "calendar#settings", "etag": '"settings"', "nextSyncToken": "settings", "items": items}

    def _setting(self, key: str, value: str) -> Fields:
        etag = f'"{hashlib.sha1((key + value).encode()).hexdigest()[:14]}"'
        return {"kind": "calendar#setting", "etag": etag, "id": key, "value": value}

    def setting(self, call: MethodCall) -> Any:
        held = self._settings(call)
        if call.parts["setting"] not in held:
            raise self.api.refuse(404, "Not Found", "notFound")
        return self._setting(call.parts["setting"], held[call.parts["setting"]])
