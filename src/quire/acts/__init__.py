"""Acts without Google: mail by SMTP with replies by IMAP, and calls over HTTP.

They are ordinary effects: `await run.once(mail.send, "client@example.com", "Hello", "Welcome.")`. Each says how a
process that comes after a kill finds out whether it happened, and how it is undone, as far as its target lets anybody
know.
"""

from quire.acts import http as http
from quire.acts import mail as mail

__all__ = ["http", "mail"]
