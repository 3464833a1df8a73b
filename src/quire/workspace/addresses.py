"""Addresses of people, as mail, invitations and shares take them. What is none is refused with a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import getaddresses

from quire.workflows.retry import Fail

_ADDRESS = re.compile(r"[^@\s<>\",;]+@[^@\s<>\",;]+\.[^@\s<>\",;.]+")

People = str | Sequence[str]


def addresses(people: People, what: str) -> list[Address]:
    """Return the addresses, each perhaps with a name, as ``Ann <ann@example.com>``."""
    given = [people] if isinstance(people, str) else list(people)
    found = []
    for one in given:
        if "\n" in one or "\r" in one:
            raise Fail(f"{what} holds a line break: {one!r}; write each address on one line")
    for name, address in getaddresses(given):
        if not _ADDRESS.fullmatch(address):
            raise Fail(f"{what} holds {', '.join(map(repr, given))}: that is no e-mail address")
        try:
            found.append(Address(name, addr_spec=address))
        except (ValueError, MessageError, IndexError) as error:
            raise Fail(f"{what} holds {address!r}: that is no e-mail address ({error})") from error
    return found


def one_address(person: str, what: str) -> str:
    """Return the plain address of one person."""
    found = addresses(person, what)
    if len(found) != 1:
        raise Fail(f"{what} is {person!r}; it takes one e-mail address")
    return found[0].addr_spec
