"""
Tickets as strings: a number and a signature.

A signature is made with a secret of the study, which lasts as long as the study. A ticket of another study, or one that
somebody made up, is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Iterable
from typing import Final

_NUMBER: Final = struct.Struct(">Q")
_SIGNATURE: Final = 16
# Characters of a ticket.
LENGTH: Final = 4 * (_NUMBER.size + _SIGNATURE) // 3


class Signer:
    """
    Signs the tickets of one study.

    Parameters
    ----------
    secret, salt
        The study's secret, and the salt of its header, in hexadecimal.
    """

    def __init__(self, secret: str, salt: str) -> None:
        self._key, self._salt = bytes.fromhex(secret), bytes.fromhex(salt)

    def write(self, numbers: Iterable[int]) -> list[str]:
        """Return tickets with these numbers."""
        key, pack, sign, encode = self._key, _NUMBER.pack, hmac.digest, base64.urlsafe_b64encode
        made = (pack(number) for number in numbers)
        return [encode(each + sign(key, each, "sha256")[:_SIGNATURE]).decode() for each in made]

    def read(self, ticket: str) -> int | None:
        """Return the number of a ticket; None where this study did not sign it."""
        if len(ticket) != LENGTH:
            return None
        try:
            found = base64.b64decode(ticket, b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        number, signature = found[: _NUMBER.size], found[_NUMBER.size :]
        if not hmac.compare_digest(hmac.digest(self._key, number, "sha256")[:_SIGNATURE], signature):
            return None
        return int(_NUMBER.unpack(number)[0])

    def hashed(self, kind: str, text: str) -> bytes:
        """Return a text of a caller, such as a respondent, as a salted hash."""
        given = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(given, key=self._salt, digest_size=16).digest()
