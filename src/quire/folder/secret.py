"""What looks like a secret: refused in configuration, struck out of error texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

#: Shapes of keys that are given out by well-known services, and of private keys.
_SHAPES = re.compile(
    r"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----"
    r"|\bAKIA[0-9A-Z]{16}\b|\bASIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{35}"
    r"|\bGOCSPX-[0-9A-Za-z_-]{20,}"
    r"|\bya29\.[0-9A-Za-z_.-]{20,}"
    r"|\b1//0[0-9A-Za-z_-]{20,}"
    r"|\bsk-[0-9A-Za-z_-]{20,}"
    r"|\b[rsp]k_(?:live|test)_[0-9A-Za-z]{16,}"
    r"|\bgh[pousr]_[0-9A-Za-z]{30,}|\bgithub_pat_[0-9A-Za-z_]{30,}"
    r"|\bglpat-[0-9A-Za-z_-]{20,}"
    r"|\bxox[abeoprs]-[0-9A-Za-z-]{10,}"
    r"|\bhf_[0-9A-Za-z]{30,}|\bnpm_[0-9A-Za-z]{30,}|\bpypi-[0-9A-Za-z_-]{30,}"
    r"|\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}"
    r"|\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s:@]{3,}(?=@)"
    r"|(?<=hooks\.slack\.com/services/)[0-9A-Za-z/]{20,}"
)
_BEARER = re.compile(r"(?i)(?<=\bbearer )[0-9A-Za-z._~+/-]{12,}=*")

#: Under these words any literal is a secret; under the others only one that looks random.
_ALWAYS = frozenset({"password", "passwd", "passphrase", "pwd", "secret", "secrets"})
_SUSPECT = frozenset({"key", "keys", "apikey", "token", "tokens", "credential", "credentials", "auth", "bearer", "pat"})
#: Words that say of a name that its value only points to the secret, or describes it.
_ABOUT = frozenset(
    {"name", "names", "id", "ids", "path", "file", "ref", "pointer", "env", "url", "uri", "limit", "ttl"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
#: A pointer says where the secret lives.
_POINTER = re.compile(
    r"(?:env|file|vault|keyring|keychain|secret|secrets|op|aws|gcp|gsm|sm|ssm|ref|pointer):\S+"
    r"|\$\{?[A-Za-z_]\w*\}?|projects/[^/\s]+/secrets/\S+|arn:aws:\S+|<[^>]*>"
)

#: A name and its value as texts and code write them: ``password=…``, ``"token": "…"``, ``secret: '…'``.
_PAIR = re.compile(
    r"(?<![\w-])(?P<name>[A-Za-z][\w-]{0,80})(?P<between>[\"']?\s*(?:=>|==?|:)\s*)"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"']+)(?P=quote)|(?P<bare>[^\s\"',;&(){}\[\]]+))"
)
#: Shorter values of the environment stand in too many texts by chance.
_LEAST_HIDDEN = 8
_BLACK = "[redacted]"


def has_shape(text: str) -> bool:
    """The text holds something of the shape of a key."""
    return _SHAPES.search(text) is not None


def redacted(text: str, hidden: Iterable[str] = ()) -> str:
    """Return the text without what looks like a secret, and without the values that are ``hidden``."""
    for value in hidden:
        text = text.replace(value, _BLACK)
    return _PAIR.sub(_without_value, _BEARER.sub(_BLACK, _SHAPES.sub(_BLACK, text)))


def _without_value(found: re.Match[str]) -> str:
    """Return the pair as it stands, or with its value struck out if the name says that it is a secret."""
    quoted, bare = found["quoted"], found["bare"]
    # ``password: must be long`` is a sentence. Without quotes only ``password=…`` gives a value.
    gives = quoted or "=" in found["between"] or _looks_random(bare)
    if not gives or not is_secret(found["name"], quoted or bare):
        return found[0]
    quote = found["quote"] or ""
    return f"{found['name']}{found['between']}{quote}{_BLACK}{quote}"


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Return the values of the environment's variables whose names say that they are secrets, longest first.

    Paths are none: the shell's own ``PWD`` is the folder in which somebody works.
    """
    found = {
        value
        for name, value in environ.items()
        if len(value) >= _LEAST_HIDDEN
        and value[0] != "/"
        and _words(name) & (_ALWAYS | _SUSPECT)
        and not _words(name) & _ABOUT
    }
    return sorted(found, key=len, reverse=True)


def is_secret(name: str, value: str) -> bool:
    """Return whether this value under this name looks like a secret rather than a constant or a pointer to one."""
    if has_shape(value):
        return True
    text = value.strip()
    if not text or _POINTER.fullmatch(text):
        return False
    words = _words(name)
    if words & _ABOUT:
        return False
    if words & _ALWAYS:
        return True
    return bool(words & _SUSPECT) and _looks_random(text)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _looks_random(text: str) -> bool:
    if len(text) < 16 or any(letter.isspace() for letter in text):
        return False
    kinds = sum(any(map(test, text)) for test in (str.isdigit, str.islower, str.isupper))
    return kinds >= 2 and _entropy(text) >= 3.0


def _entropy(text: str) -> float:
    """Bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
