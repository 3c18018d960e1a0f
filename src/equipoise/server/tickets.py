"""
Tickets as strings: a number and a signature.

A signature is made with a secret of the study, which lasts as long as the study. A ticket of another study, or one that
somebody made up, is refused. Keyed BLAKE2b [1]_ is a MAC as HMAC is, and for short texts Python computes it without
giving up its lock, which would let every other thread go first.

References
----------
.. [1] M.-J. Saarinen, J.-P. Aumasson (2015), The BLAKE2 cryptographic hash and message authentication code. RFC 7693.
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
    secret
        The study's secret, in hexadecimal.
    """

    def __init__(self, secret: str) -> None:
        self._key = bytes.fromhex(secret)

    def write(self, numbers: Iterable[int]) -> list[str]:
        """Return tickets with these numbers."""
        pack, sign, encode = _NUMBER.pack, self._sign, base64.urlsafe_b64encode
        made = (pack(number) for number in numbers)
        return [encode(each + sign(each)).decode() for each in made]

    def read(self, ticket: str) -> int | None:
        """Return the number of a ticket; None where this study did not sign it."""
        if len(ticket) != LENGTH:
            return None
        try:
            found = base64.b64decode(ticket, b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        number, signature = found[: _NUMBER.size], found[_NUMBER.size :]
        if not hmac.compare_digest(self._sign(number), signature):
            return None
        return int(_NUMBER.unpack(number)[0])

    def _sign(self, number: bytes) -> bytes:
        return hashlib.blake2b(number, key=self._key, digest_size=_SIGNATURE).digest()
