"""Drawings of a workflow from its definition, with the records at each step: Mermaid, SVG, terminal. Pure.

A definition is what ``Workflow.definition()`` gives and the ledger keeps; counts are records by (step, status).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

Definition = Mapping[str, Any]
Counts = Mapping[tuple[str, str], int]

_ORDER = ("PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE")
_FILLS = {
    "ERROR": "#fde2e1",
    "NEEDS_APPROVAL": "#fff3c9",
    "RUNNING": "#dbe9ff",
    "PENDING": "#e0f4f7",
    "WAITING": "#f1e4fb",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def _clean(text: object) -> str:
    return _CONTROL.sub("·", str(text))


def _at(step: str, counts: Counts) -> list[tuple[str, int]]:
    """Return the records at a step, by status, in the order of a record's life."""
    return [(status, counts[step, status]) for status in _ORDER if counts.get((step, status))]


def _words(found: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {status}" for status, count in found)


def _steps(definition: Definition) -> list[Mapping[str, Any]]:
    return list(definition["steps"])


def _strays(definition: Definition, counts: Counts) -> list[str]:
    """Steps that records stand at and that the definition does not have: renamed, dropped, or the engine's own."""
    known = {row["name"] for row in _steps(definition)} | {""}
    return sorted({step for step, _ in counts if step not in known})


# -- Mermaid ---------------------------------------------------------------------------------------------------


def mermaid(definition: Definition, counts: Counts | None = None) -> str:
    """Return a Mermaid state diagram."""
    counts = counts or {}
    steps = _steps(definition)
    ids = {row["name"]: f"s{number}" for number, row in enumerate(steps)}
    lines = ["stateDiagram-v2", f"    %% {_clean(definition['name'])}, version {definition['version']}"]
    for row in steps:
        label = _mermaid_text(row["name"])
        found = _at(row["name"], counts)
        if found:
            label += f" ({_words(found)})"
        lines.append(f'    state "{label}" as {ids[row["name"]]}')
    lines.append(f"    [*] --> {ids[definition['first']]}")
    for row in steps:
        lines += [f"    {ids[row['name']]} --> {ids[name]}" for name in row["then"] if name in ids]
        if row["ends"]:
            done = _words(_at("", counts)) if not counts or row is _last_end(steps) else ""
            lines.append(f"    {ids[row['name']]} --> [*]" + (f": {done}" if done else ""))
    for number, name in enumerate(_strays(definition, counts)):
        lines.append(f'    state "{_mermaid_text(name)} ({_words(_at(name, counts))})" as stray{number}')
    return "\n".join(lines)


def _last_end(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((row for row in reversed(steps) if row["ends"]), None)


def _mermaid_text(text: str) -> str:
    return _clean(text).replace('"', "#quot;").replace("\\", "#92;")


# -- terminal --------------------------------------------------------------------------------------------------


def terminal(definition: Definition, counts: Counts | None = None) -> str:
    """Return the machine in plain characters: a box for each step, its successors and its records."""
    counts = counts or {}
    steps = _steps(definition)
    names = [row["name"] for row in steps]
    width = max([len(_clean(name)) for name in names], default=0)
    cap = f", at most {definition['cap']} at once" if definition.get("cap") else ""
    lines = [f"{_clean(definition['name'])}  (version {definition['version']}{cap})"]
    for place, row in enumerate(steps):
        found = _words(_at(row["name"], counts))
        shape = "({})" if row["rests"] else "[{}]"
        box = shape.format(_clean(row["name"]).ljust(width))
        mark = "→" if row["name"] == definition["first"] else " "
        ways = _ways(row, place, names)
        limit = f"  cap {row['cap']}" if row.get("cap") else ""
        lines.append(f"{mark} {box} {ways}{limit}".rstrip() + (f"   ● {found}" if found else ""))
    lines += [
        f"  ?{_clean(name).ljust(width)}? no step of this version   ● {_words(_at(name, counts))}"
        for name in _strays(definition, counts)
    ]
    ended = _words(_at("", counts))
    if ended:
        lines.append(f"  {' ' * (width + 2)} ended   ● {ended}")
    return "\n".join(lines) + "\n"


def _ways(row: Mapping[str, Any], place: int, names: Sequence[str]) -> str:
    if row["ends"]:
        return "─▶ end"
    ways = []
    for name in row["then"]:
        back = name in names and names.index(name) <= place
        ways.append(f"{_clean(name)}{' ↺' if back else ''}")
    return "─▶ " + ", ".join(ways)


# -- SVG -------------------------------------------------------------------------------------------------------


class _Box(NamedTuple):
    name: str
    layer: int
    x: float
    y: float
    width: float
    height: float = 52.0


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="#666"/></marker></defs>'
)
_FONT = 'font-family="sans-serif" font-size="14"'
_GAP_X, _GAP_Y, _HEIGHT, _CHAR, _TOP = 70.0, 28.0, 52.0, 8.2, 90.0


def _layers(definition: Definition) -> list[list[str]]:
    """Steps in columns: each right of every step declared before it that leads to it."""
    depth: dict[str, int] = {}
    for row in _steps(definition):
        here = depth.setdefault(row["name"], 0)
        for name in row["then"]:
            later = [step["name"] for step in _steps(definition)]
            if name in later and later.index(name) > later.index(row["name"]):
                depth[name] = max(depth.get(name, 0), here + 1)
    return [[name for name, at in depth.items() if at == layer] for layer in range(max(depth.values(), default=-1) + 1)]


def _placed(definition: Definition, counts: Counts) -> dict[str, _Box]:
    boxes: dict[str, _Box] = {}
    x = 40.0
    for layer_number, layer in enumerate(_layers(definition)):
        texts = [max(len(_clean(name)), len(_words(_at(name, counts))) * 0.8) for name in layer]
        width = max(90.0, max(texts) * _CHAR + 24)
        for place, name in enumerate(layer):
            boxes[name] = _Box(name, layer_number, x, _TOP + place * (_HEIGHT + _GAP_Y), width)
        x += width + _GAP_X
    return boxes


def svg(definition: Definition, counts: Counts | None = None) -> str:
    """A picture that stands by itself: no script, no font, nothing from elsewhere."""
    counts = counts or {}
    boxes = _placed(definition, counts)
    right = max((box.x + box.width for box in boxes.values()), default=0.0) + 60
    strays = _strays(definition, counts)
    bottom = max((box.y + box.height for box in boxes.values()), default=0.0) + 70 + 20 * len(strays)
    name, size = escape(_clean(definition["name"])), f'{right:.0f} {bottom:.0f}" width="{right:.0f}'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {_FONT} role="img">',
        f"<title>{name}</title>",
        _MARKER,
        f'<rect width="100%" height="100%" fill="white"/><text x="16" y="26" font-weight="bold">{name}</text>',
    ]
    steps = _steps(definition)
    for row in steps:
        parts += [_arrow(boxes[row["name"]], boxes[name]) for name in row["then"] if name in boxes]
    for row in steps:
        parts.append(_box(boxes[row["name"]], row, _at(row["name"], counts)))
    tail = [f"at {_clean(name)}, no step of this version: {_words(_at(name, counts))}" for name in strays]
    ended = _words(_at("", counts))
    for number, text in enumerate([*([f"ended: {ended}"] if ended else []), *tail]):
        y = bottom - 20 * (len(tail) + bool(ended) - number) + 4
        parts.append(f'<text x="16" y="{y:.0f}" fill="#444">{escape(text)}</text>')
    return "\n".join([*parts, "</svg>"])


def _box(box: _Box, row: Mapping[str, Any], found: Sequence[tuple[str, int]]) -> str:
    worst = next((status for status in _FILLS if any(status == name for name, _ in found)), "")
    radius = 26 if row["rests"] else 6
    thick = 3 if row["ends"] else 1.5
    middle = box.x + box.width / 2
    y = box.y + (22 if found else 31)
    text = f'<text x="{middle:.1f}" y="{y:.1f}" text-anchor="middle">{escape(_clean(row["name"]))}</text>'
    if found:
        text += (
            f'<text x="{middle:.1f}" y="{box.y + 41:.1f}" text-anchor="middle" font-size="11" fill="#444">'
            f"{escape(_words(found))}</text>"
        )
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}" '
        f'fill="{_FILLS.get(worst, "#f7f7f7")}" stroke="#333" stroke-width="{thick}"/>{text}'
    )


def _arrow(source: _Box, target: _Box) -> str:
    """To the next column straight, over columns in between above them, back below."""
    middle, there = source.x + source.width / 2, target.x + target.width / 2
    if source.name == target.name:
        y = source.y
        left, right = middle - 14, middle + 14
        path = f"M{left:.1f} {y:.1f}C{left - 10:.1f} {y - 30:.1f} {right + 10:.1f} {y - 30:.1f} {right:.1f} {y:.1f}"
    elif target.layer == source.layer + 1:
        x1, y1 = source.x + source.width, source.y + source.height / 2
        x2, y2 = target.x, target.y + target.height / 2
        bend = (x2 - x1) / 2
        path = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    elif target.layer > source.layer:
        high = min(source.y, target.y) - 20 - 12 * (target.layer - source.layer)
        path = f"M{middle:.1f} {source.y:.1f}C{middle:.1f} {high:.1f} {there:.1f} {high:.1f} {there:.1f} {target.y:.1f}"
    else:
        y1, y2 = source.y + source.height, target.y + target.height
        low = max(y1, y2) + 24 + 12 * (source.layer - target.layer)
        path = f"M{middle:.1f} {y1:.1f}C{middle:.1f} {low:.1f} {there:.1f} {low:.1f} {there:.1f} {y2:.1f}"
    return f'<path d="{path}" fill="none" stroke="#666" stroke-width="1.5" marker-end="url(#tip)"/>'
