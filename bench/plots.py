"""Bar charts as SVG, with no library: one chart for each metric, peers grouped by what they are."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from bench.figures import Metric, Summary

WIDTH, ROW, LEFT, RIGHT, TOP = 860, 26, 210, 150, 62
COLOURS = {"quire": "#c2410c", "engine": "#1d4ed8", "queue": "#64748b", "raw": "#15803d"}
KINDS = {
    "quire": "Quire",
    "engine": "workflow engine",
    "queue": "queue, no step checkpoints",
    "raw": "raw limit of the store",
}


def chart(metric: Metric, title: str, found: dict[str, Summary], peers: dict[str, Any], quick: bool) -> str:
    """Bars on a logarithmic scale when the values span more than a factor of 30; whiskers from lowest to highest."""
    order = sorted(found, key=lambda name: found[name].median, reverse=bool(metric.higher_is_better))
    values = [found[name] for name in order]
    top = max(max(value.high for value in values), 1e-9)
    positive = [value.low for value in values if value.low > 0]
    logarithmic = bool(positive) and len(positive) == len(values) and top / min(positive) > 30
    floor = 10 ** math.floor(math.log10(min(positive) * 0.9)) if logarithmic else 0.0
    span = WIDTH - LEFT - RIGHT

    def position(value: float) -> float:
        if logarithmic:
            return LEFT + span * (math.log10(max(value, floor)) - math.log10(floor)) / (
                math.log10(top) - math.log10(floor)
            )
        return LEFT + span * max(value, 0.0) / top

    height = TOP + ROW * len(order) + 48
    better = "more is better" if metric.higher_is_better else "less is better"
    scale = ", logarithmic" if logarithmic else ""
    heading = f"{metric.workload}: {title}"
    axis = f"{metric.title}, {metric.unit}" if metric.unit else metric.title
    warning = " - quick run, sizes too small to compare" if quick else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        ' font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(heading)}, {escape(axis)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="14" y="24" font-size="16" font-weight="600" fill="#111827">{escape(heading)}</text>',
        f'<text x="14" y="44" fill="#4b5563">{escape(axis)} ({better}{scale}){warning}</text>',
    ]
    for row, name in enumerate(order):
        parts += _bar(metric, peers[name], found[name], TOP + ROW * row, position)
    parts += _legend([peers[name]["kind"] for name in order], height)
    return "\n".join([*parts, "</svg>", ""])


def _bar(metric: Metric, peer: dict[str, Any], value: Summary, y: float, position: Any) -> list[str]:
    end, low, high = position(value.median), position(value.low), position(value.high)
    middle = y + 9
    text = f"{value.median:,.{metric.digits}f}" + (" (noisy)" if value.noisy else "")
    fill = f'fill="{COLOURS[peer["kind"]]}" fill-opacity="{0.45 if value.noisy else 1}"'
    whiskers = f"M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8"
    return [
        f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end" fill="#111827">{escape(peer["label"])}</text>',
        f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" height="18" rx="2" {fill}/>',
        f'<path d="{whiskers}" stroke="#111827" fill="none"/>',
        f'<text x="{max(end, high) + 8:.1f}" y="{y + 14}" fill="#111827">{text}</text>',
    ]


def _legend(kinds: list[str], height: float) -> list[str]:
    parts, x = [], 14.0
    for kind in COLOURS:
        if kind in kinds:
            label = KINDS[kind]
            parts.append(f'<rect x="{x}" y="{height - 26}" width="12" height="12" rx="2" fill="{COLOURS[kind]}"/>')
            parts.append(f'<text x="{x + 18}" y="{height - 16}" fill="#4b5563">{label}</text>')
            x += 40 + 7 * len(label)
    return parts


def curves(heading: str, axes: tuple[str, str], lines: dict[str, list[tuple[float, float]]]) -> str:
    """Lines from zero, one for each label: what grows, and what stays flat."""
    height, bottom, colours = 360, 300, ["#c2410c", "#1d4ed8", "#64748b", "#15803d", "#7c3aed", "#0e7490", "#be123c"]
    widest = max(max(x for x, _ in points) for points in lines.values()) or 1.0
    highest = max(max(y for _, y in points) for points in lines.values()) * 1.05 or 1.0
    left, right = 80, WIDTH - 200

    def place(point: tuple[float, float]) -> str:
        x, y = point
        return f"{left + (right - left) * x / widest:.1f} {bottom - (bottom - TOP) * y / highest:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        ' font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(heading)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="14" y="24" font-size="16" font-weight="600" fill="#111827">{escape(heading)}</text>',
        f'<text x="14" y="44" fill="#4b5563">{escape(axes[1])} over {escape(axes[0])}</text>',
        f'<path d="M{left} {TOP}V{bottom}H{right}" stroke="#9ca3af" fill="none"/>',
    ]
    for part in (0.0, 0.5, 1.0):
        x, y = left + (right - left) * part, bottom - (bottom - TOP) * part
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#4b5563">{widest * part:,.0f}</text>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end" fill="#4b5563">{highest * part:,.1f}</text>')
    for number, (label, points) in enumerate(lines.items()):
        colour = colours[number % len(colours)]
        parts.append(f'<path d="M{" L".join(map(place, points))}" stroke="{colour}" stroke-width="2" fill="none"/>')
        y = TOP + 20 * number
        parts.append(f'<rect x="{right + 16}" y="{y}" width="12" height="12" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{right + 34}" y="{y + 11}" fill="#111827">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>", ""])
