"""The frame of the pages for people. Each page is whole in itself: nothing comes from elsewhere, no script runs."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from html import escape as escape

from hectograph.core.http import Request, Response

_STYLE = """
*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#202124;background:#fff}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:.7rem 1rem;border-bottom:1px solid #dadce0;background:#f8f9fa}
nav a{color:#1a73e8;text-decoration:none}nav a.on{color:#202124;font-weight:600}
main{max-width:62rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.5rem;font-weight:500;margin:.4rem 0 1rem}
h2{font-size:1.1rem;font-weight:600;margin:1.4rem 0 .5rem}a{color:#1a73e8}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #dadce0;
vertical-align:top;overflow-wrap:anywhere}th{font-weight:600;color:#5f6368}
.card{border:1px solid #dadce0;border-radius:8px;padding:.8rem 1rem;margin:.7rem 0;overflow-wrap:anywhere}
.quiet{color:#5f6368;font-size:.9rem}.row{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace;margin:.4rem 0}
input,textarea,select,button{font:inherit;padding:.4rem .6rem;border:1px solid #747775;border-radius:6px;max-width:100%}
textarea,input.wide{width:100%}textarea{min-height:6rem}
label{display:block;margin:.6rem 0}label>span{display:block;font-weight:600}
button{background:#0b57d0;color:#fff;border-color:#0b57d0;cursor:pointer}button.plain{background:#fff;color:#0b57d0}
button.on{background:#146c2e;border-color:#146c2e;color:#fff}
.bubble{background:#f1f3f4;border-radius:10px;padding:.5rem .8rem;margin:.5rem 0;max-width:46rem}
.unread{font-weight:600}img{max-width:100%}fieldset{border:1px solid #dadce0;border-radius:8px;margin:.7rem 0}
@media(max-width:600px){main{padding:.7rem}thead{display:none}table,tbody{display:block}
tr{display:block;border-bottom:1px solid #dadce0;padding:.4rem 0}td{display:block;border:0;padding:.1rem .2rem}
td[data-of]::before{content:attr(data-of) ": ";color:#5f6368}}
"""

#: The pages that every page leads to.
PLACES = (
    ("/", "sheets"),
    ("/drive", "drive"),
    ("/docs", "documents"),
    ("/outbox", "outbox"),
    ("/mail", "mail"),
    ("/calendar", "calendar"),
    ("/forms", "forms"),
    ("/chat", "chat"),
)


def page(title: str, body: str, at: str = "", status: int = 200) -> Response:
    """Return a page. ``body`` is HTML; texts in it are escaped already."""
    links = "".join(
        f'<a href="{path}"{" class=on aria-current=page" if path == at else ""}>{name}</a>' for path, name in PLACES
    )
    whole = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head><body><nav>{links}</nav><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return Response(200 if status == 200 else status, whole.encode(), dict(HEADERS))


HEADERS = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], empty: str) -> str:
    """Return a table of cells that are HTML already, or the sentence for an empty one."""
    # On a narrow screen there are no heads: each cell but the first says what it is.
    names = list(heads)
    said = ["", *(f' data-of="{escape(word)}"' if word else "" for word in names[1:])]
    cells = ((f"<td{of}>{cell}</td>" for of, cell in zip(said, row, strict=True)) for row in rows)
    lines = [f"<tr>{''.join(row)}</tr>" for row in cells]
    if not lines:
        return f"<p class=quiet>{escape(empty)}</p>"
    head = "".join(f"<th>{escape(word)}</th>" for word in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def link(path: str, text: str) -> str:
    return f'<a href="{escape(path)}">{escape(text)}</a>'


def form(action: str, inner: str, hidden: Mapping[str, str] | None = None) -> str:
    fields = "".join(f'<input type=hidden name="{escape(k)}" value="{escape(v)}">' for k, v in (hidden or {}).items())
    return f'<form method=post action="{escape(action)}">{fields}{inner}</form>'


def button(text: str, name: str = "", value: str = "", look: str = "") -> str:
    named = f' name="{escape(name)}" value="{escape(value)}"' if name else ""
    return f'<button{named} class="{look}">{escape(text)}</button>'


def given(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent."""
    return {name: values[-1] for name, values in every(request).items()}


def every(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form that was sent, with all values of each."""
    return urllib.parse.parse_qs(request.body.decode("utf-8", "replace"), keep_blank_values=True)


def back(path: str) -> Response:
    """Send the browser to a page after a form was taken."""
    return Response(303, b"", {"Location": path, "Cache-Control": "no-store"})


def quoted(text: str) -> str:
    """Return a text as one part of a path."""
    return urllib.parse.quote(text, safe="@")
