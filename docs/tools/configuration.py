"""Makes docs/configuration.md from the keys of the configuration: ``python docs/tools/configuration.py``."""

from __future__ import annotations

import re
from pathlib import Path

from quire.ledger.busy import VARIABLE as LOCK_TIMEOUT
from quire.ledger.engine import KEYRING_FILE
from quire.surfaces.alerts.channel import KINDS, PASSWORD
from quire.surfaces.config import DEFAULT_LEDGER, KEYS, Key

PAGE = Path(__file__).parents[1] / "configuration.md"

#: A whole file: every key stands in it once.
EXAMPLE = """\
# quire.toml
flows = ["flows.py", "missions/roadmap.yaml"]
ledger = "sqlite:///ledger.db"             # or postgresql://user@host/name, or sheets://SPREADSHEET_ID
folder = "Workflows"                       # or drive://FOLDER_ID
state = ".quire/state"
retention = "90d"
patience = "10s"
panel = "sheets://SPREADSHEET_ID"
deps = "flows:make_deps"
public_url = "https://quire.example.org"
who = "ann@example.org"

[groups]
editors = ["ann@example.org", "bob@example.org"]

[callers]
ci = "operator:5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8"

[oidc]
issuer = "https://accounts.example.org"
client_id = "quire"
client_secret = "$QUIRE_OIDC_SECRET"
operator = "@example.org"

[alerts]
team = "slack:$QUIRE_SLACK_URL"

[telemetry]
otlp = "http://localhost:4318"
logs = "json"

[state_table]
header = "3"
record_id = "Execution_ID"
status = "Current_State"

[states.claims]
tab = "Claims"
status = "Task_Status"
moves = [{ from = "New", to = ["Paid", "Rejected"] }]

[google]
account = "ann@example.org"
domain = "example.org"

[google.support]                           # gmail.send.using("support")
account = "support@example.org"
mail = "send-only"

[mcp]
google = ["draft", "event"]
"""

#: The page that says more of a key.
MORE = {
    "flows": "[quick start](quickstart.md), [missions](missions.md)",
    "ledger": "[operating](operating.md#stores), [a sheet](sheets.md)",
    "folder": "[the folder](folder.md)",
    "state": "[standbys and restores](guides/high-availability.md#a-ledger-that-went-back-in-time)",
    "retention": "[forgetting](operating.md#forgetting)",
    "patience": "[when the server is away](guides/high-availability.md#when-the-server-is-away)",
    "panel": "[the panel](panel.md)",
    "deps": "[what steps work with](api.md#what-steps-work-with)",
    "public_url": "[sign-in](server.md#signing-in-with-openid-connect), [alerts](alerts.md)",
    "who": "[the command line](cli.md)",
    "groups": "[two of three](guides/approve-with-two-of-three.md)",
    "callers": "[who may call](server.md)",
    "oidc": "[sign-in](server.md#signing-in-with-openid-connect)",
    "alerts": "[alerts](alerts.md)",
    "telemetry": "[telemetry](telemetry.md)",
    "state_table": "[the panel](panel.md#its-columns)",
    "states": "[tables](tables.md#without-python)",
    "google": "[connect Google](guides/connect-google.md)",
    "mcp": "[chat](chat.md)",
}
SHAPES = {
    "text": "a text",
    "list": "a list of texts",
    "table": "a table of texts",
    "tables": "a table of lists of texts",
    "parts": "a table of tables",
    "accounts": "a table of texts, and of tables of texts",
}
#: Variables that are no key.
VARIABLES = {
    "QUIRE_CONFIG": "the configuration file, instead of the nearest `quire.toml`",
    KEYRING_FILE: "a file with the keys that sign receipts, links and calls; without it the ledger keeps them "
    "([who may see the book](sheets.md#who-may-see-the-book))",
    PASSWORD: "the password of the mail server that alerts go through ([alerts](alerts.md))",
    LOCK_TIMEOUT: "how many seconds a write waits for a lock of SQLite or PostgreSQL, until it says that all is busy; "
    "without it 60 (PostgreSQL: 30)",
    "QUIRE_MODELS": "the folder of local models, instead of one in the user's cache ([missions](missions.md#models))",
    "QUIRE_GOOGLE": "where acts on Google Workspace go, for instance to the emulator ([Workspace](workspace.md)); "
    "`QUIRE_GOOGLE_NAME` for the connection of that name",
    "QUIRE_CHAT": "the webhook of a Google Chat space to which acts write ([Workspace](workspace.md)); "
    "`QUIRE_CHAT_NAME` for the webhook of that name",
    "QUIRE_CHAT_AUDIENCE": "for whom Google signs the calls of its Chat app: the number of the project, or the address "
    "of this server ([Workspace](workspace.md))",
    "GOOGLE_APPLICATION_CREDENTIALS": "the key file of a service account, for sheets and Drive ([a sheet](sheets.md))",
    "QUIRE_SMTP": "the server for mail acts, as `smtps://user:password@host` ([acts without Google](acts.md))",
    "QUIRE_IMAP": "the mailbox in which acts look for what was sent, and for replies ([acts without Google](acts.md))",
    "QUIRE_MAIL_FROM": "the address that sends mail in acts without Google ([acts without Google](acts.md))",
    "GOOGLE_CLOUD_PROJECT": "the project in JSON log lines ([telemetry](telemetry.md))",
}


def variable(key: Key) -> str:
    return f"`QUIRE_{key.name.upper()}`" if key.shape in ("text", "list") else "–"


def default(key: Key) -> str:
    return {"ledger": f"`{DEFAULT_LEDGER}`", "who": "the name of the login"}.get(key.name, "–")


def markdown() -> str:
    rows = [
        f"| `{key.name}` | {SHAPES[key.shape]} | {key.what} | {default(key)} | {variable(key)} | {MORE[key.name]} |"
        for key in KEYS
    ]
    variables = [f"| `{name}` | {what} |" for name, what in VARIABLES.items()]
    return f"""# Configuration

*Made by `python docs/tools/configuration.py` from the code; a test fails when it is stale.*

Quire reads the nearest `quire.toml`, in the current directory or above it; `[tool.quire]` in `pyproject.toml` is the
same. Without a file the defaults hold. If a key is set in several places, then a flag of the command wins over the
environment, the environment over the file, and the file over the default. Paths in the file are relative to the file.
An unknown key is refused with the nearest known one. `quire config` shows every value and where it comes from.

| key | is | says | default | variable | more |
|---|---|---|---|---|---|
{chr(10).join(rows)}

A variable that stands for a list takes several values with a comma between them. Secrets do not stand in the file: a
value such as `$QUIRE_SLACK_URL` in `[alerts]` and `[oidc]` is taken from the environment.

## Every key once

```toml
{EXAMPLE}```

`[alerts].only` takes any of: {", ".join(f"`{kind}`" for kind in KINDS)}.

```console
$ quire config
who … ann@example.org … quire.toml
```

## Variables that are no key

| variable | says |
|---|---|
{chr(10).join(variables)}

Providers of models read their own keys, such as `ANTHROPIC_API_KEY` ([missions](missions.md)).
"""


def named(text: str) -> set[str]:
    """The variables of Quire that a text names."""
    return set(re.findall(r"QUIRE_[A-Z_]*[A-Z]", text))


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
