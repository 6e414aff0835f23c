"""What browsers keep in place of the token: sealed, for some hours, the same for all workers. Floor 7."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from cryptography.fernet import Fernet, InvalidToken

MAX_TOKEN_BYTES: Final = 2_000  # browsers keep cookies of up to 4 KB


class Seal:
    """Seals tokens with what is made of a secret; nobody else can read or make what it made.

    Args:
        for_s: how long a seal holds.
    """

    def __init__(self, secret: str, for_s: int) -> None:
        self._secret, self._for_s = secret.encode(), for_s
        self._fernet = Fernet(base64.urlsafe_b64encode(self._key("cookies")))

    def close(self, token: str) -> str | None:
        """The cookie for a token; None for one that is too long for a cookie."""
        plain = token.encode()
        return self._fernet.encrypt(plain).decode() if len(plain) <= MAX_TOKEN_BYTES else None

    def open(self, cookie: str) -> str | None:
        """The token in a cookie; None for what is not of this seal, or too old."""
        try:
            return self._fernet.decrypt(cookie.encode("ascii", "replace"), ttl=self._for_s).decode()
        except InvalidToken:
            return None

    def forms_of(self, user: str) -> str:
        """What the forms of a user are known by, in every worker."""
        return self._key(f"forms {user}").hex()

    def _key(self, use: str) -> bytes:
        return hmac.digest(self._secret, use.encode(), hashlib.sha256)
