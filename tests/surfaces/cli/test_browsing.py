"""``quire up`` opens the dashboard for a person in front of a screen, and for nobody else."""

from __future__ import annotations

import threading
import webbrowser

import pytest

from quire.surfaces.cli.run import browsing


@pytest.mark.parametrize(
    ("environment", "platform", "there"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({}, "darwin", True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 1 5.6.7.8 22"}, "linux", False),
        ({"DISPLAY": ":0", "CI": "true"}, "linux", False),
        ({"DISPLAY": ":0", browsing.OPENED: "1"}, "linux", False),
    ],
)
def test_a_screen_is_recognised(environment: dict[str, str], platform: str, there: bool) -> None:
    assert browsing.has_screen(environment, platform) is there


def test_the_dashboard_is_opened_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    opened = threading.Event()

    def open_(address: str) -> bool:
        shown.append(address)
        opened.set()
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    for name in ("CI", "SSH_CONNECTION", browsing.OPENED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")

    assert not browsing.show("http://127.0.0.1:1", terminal=False)
    assert browsing.show("http://127.0.0.1:2", terminal=True)
    assert opened.wait(5)
    assert shown == ["http://127.0.0.1:2"]
