"""What looks like a secret: refused in configuration, struck out of error texts."""

from __future__ import annotations

import math
import re
from collections import Counter

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


def has_shape(text: str) -> bool:
    """The text holds something of the shape of a key."""
    return _SHAPES.search(text) is not None


def redacted(text: str) -> str:
    """The text without what looks like a key."""
    return _BEARER.sub("[redacted]", _SHAPES.sub("[redacted]", text))


def is_secret(name: str, value: str) -> bool:
    """Whether this value under this name looks like a secret rather than a constant or a pointer to one."""
    if has_shape(value):
        return True
    text = value.strip()
    if not text or _POINTER.fullmatch(text):
        return False
    words = {word.lower() for word in _WORD.findall(name)}
    if words & _ABOUT:
        return False
    if words & _ALWAYS:
        return True
    return bool(words & _SUSPECT) and _looks_random(text)


def _looks_random(text: str) -> bool:
    if len(text) < 16 or any(letter.isspace() for letter in text):
        return False
    kinds = sum(any(map(test, text)) for test in (str.isdigit, str.islower, str.isupper))
    return kinds >= 2 and _entropy(text) >= 3.0


def _entropy(text: str) -> float:
    """Bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
