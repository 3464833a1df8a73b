"""Tokens that the emulator signs in Google's name, with a key of its own: RS256, and the certificate that proves them.

The key is made when it is first needed, and lasts as long as the process. ``/emulator/certs`` shows its certificate in
the form in which Google shows its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

_BITS = 2048
_EXPONENT = 65537

#: What stands before a SHA-256 digest in a signature of PKCS #1.
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")

#: The names sha256WithRSAEncryption, rsaEncryption and commonName, as DER writes them.
_SHA256_RSA = bytes.fromhex("300d06092a864886f70d01010b0500")
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
_COMMON_NAME = bytes.fromhex("0603550403")


@dataclass(frozen=True)
class Key:
    modulus: int
    private: int

    @property
    def key_id(self) -> str:
        return hashlib.sha1(_bytes(self.modulus)).hexdigest()

    def sign(self, data: bytes) -> bytes:
        size = (self.modulus.bit_length() + 7) // 8
        info = _DIGEST_INFO + hashlib.sha256(data).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(info) - 3) + b"\x00" + info
        return pow(int.from_bytes(padded, "big"), self.private, self.modulus).to_bytes(size, "big")

    def certificate(self) -> str:
        """Return a self-signed certificate as PEM."""
        name = _der(0x30, _der(0x31, _der(0x30, _COMMON_NAME + _der(0x0C, b"hectograph"))))
        times = _der(0x30, _der(0x17, b"200101000000Z") + _der(0x17, b"491231235959Z"))
        public = _der(0x30, _integer(self.modulus) + _integer(_EXPONENT))
        holder = _der(0x30, _RSA + _der(0x03, b"\x00" + public))
        body = _der(0x30, _integer(1) + _SHA256_RSA + name + times + name + holder)
        whole = _der(0x30, body + _SHA256_RSA + _der(0x03, b"\x00" + self.sign(body)))
        text = base64.encodebytes(whole).decode().replace("\n", "")
        lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
        return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"

    def jwk(self) -> dict[str, str]:
        numbers = {"n": _base64(_bytes(self.modulus)), "e": _base64(_bytes(_EXPONENT))}
        return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": self.key_id, **numbers}


@cache
def key() -> Key:
    """Return the key of this process."""
    while True:
        p, q = _prime(_BITS // 2), _prime(_BITS // 2)
        order = (p - 1) * (q - 1)
        if p != q and order % _EXPONENT:
            return Key(p * q, pow(_EXPONENT, -1, order))


def token(claims: Mapping[str, Any]) -> str:
    """Return a signed token with these claims."""
    held = key()
    parts = ({"alg": "RS256", "kid": held.key_id, "typ": "JWT"}, claims)
    text = ".".join(_base64(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    return f"{text}.{_base64(held.sign(text.encode()))}"


def claims(text: str) -> dict[str, Any]:
    """Return what a token claims, without a look at its signature."""
    middle = text.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    return found


def _prime(bits: int) -> int:
    small = [n for n in range(3, 2000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2))]
    while True:
        found = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if all(found % one for one in small) and _probably_prime(found):
            return found


def _probably_prime(number: int) -> bool:
    """Miller and Rabin's test."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(24):
        power = pow(2 + secrets.randbelow(number - 3), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    head = bytes([size]) if size < 128 else bytes([0x80 | len(_bytes(size))]) + _bytes(size)
    return bytes([tag]) + head + content


def _integer(number: int) -> bytes:
    data = _bytes(number)
    return _der(0x02, b"\x00" + data if data[0] & 0x80 else data)
