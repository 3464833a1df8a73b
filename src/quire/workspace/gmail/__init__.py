"""Mail that leaves once: drafted, sent, answered, taken back; and read.

Gmail has no key by which it would know a second sending. So a mail is written as a draft first, which can be sent once.
A draft that is still there was not sent. One that is gone was sent if its thread holds our mail; otherwise somebody
threw it away, or nobody can know: a person is asked.
"""

from quire.workspace.gmail.composing import HEADER as HEADER
from quire.workspace.gmail.drafting import draft as draft
from quire.workspace.gmail.reading import thread as thread
from quire.workspace.gmail.sending import reply as reply
from quire.workspace.gmail.sending import send as send
from quire.workspace.gmail.sending import send_draft as send_draft

__all__ = ["HEADER", "draft", "reply", "send", "send_draft", "thread"]
