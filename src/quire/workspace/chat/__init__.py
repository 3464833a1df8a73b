"""Messages in Google Chat: posted by an app or a webhook, and changed, once each."""

from quire.workspace.chat.cards import card as card
from quire.workspace.chat.posting import post as post
from quire.workspace.chat.posting import update as update
from quire.workspace.chat.webhooks import webhook as webhook

__all__ = ["card", "post", "update", "webhook"]
