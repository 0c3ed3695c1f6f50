"""Digests of secrets, and keys derived from one secret, a purpose each."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

same = hmac.compare_digest
"""Equality in constant time."""


def digest(secret: str) -> str:
    """SHA-256 in hex: how a 256-bit random secret is stored and found."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derived_key(secret: bytes, purpose: str) -> bytes:
    """A 32-byte key for one purpose (HKDF of RFC 5869 with SHA-256, one output block)."""
    extracted = hmac.digest(b"\0" * 32, secret, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def sign(key: bytes, data: bytes) -> bytes:
    """A 16-byte authentication tag of the data."""
    return hmac.digest(key, data, "sha256")[:16]


def seal(key: bytes, data: bytes) -> bytes:
    """Encrypt and authenticate (AES-256-GCM, random nonce in front)."""
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, data, None)


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """What `seal` hid, or nothing if the key is another or the data was changed."""
    try:
        return AESGCM(key).decrypt(sealed[:12], sealed[12:], None)
    except (InvalidTag, ValueError):
        return None


def to_text(data: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_text(text: str) -> bytes | None:
    """The bytes behind `to_text`, or nothing if the text is not one."""
    try:
        return base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
    except ValueError:
        return None


def proof(secret: str, nonce: str, port: int) -> str:
    """What only a holder of the secret can say to a nonce. The port is in it, so that a listener
    elsewhere cannot pass the question on and give the answer for its own."""
    message = f"steadmesh hello {port} {nonce}".encode()
    return hmac.digest(secret.encode(), message, "sha256").hex()
