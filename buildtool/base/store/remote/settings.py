"""The settings of the shared cache, from the environment of the process that makes a request. No error quotes
a secret.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.base.folders import (
    REMOTE_KEY,
    REMOTE_MODE,
    REMOTE_PASSWORD,
    REMOTE_TOKEN,
    REMOTE_URL,
    REMOTE_USER,
)

MODES = ("read", "write")
_LEAST_KEY = 16  # characters
_SCHEMES = ("http", "https", "redis", "rediss")


@dataclass(frozen=True)
class Settings:
    """Where the server of the shared cache is, and how it is used. `repr` shows no secrets.

    `mode`: "read" or "write".
    `key`: the secret that signs entries ("": entries are not signed).
    `user`, `password`, `token`: the credentials.
    """

    url: str
    mode: str = "read"
    key: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Raises UsageError for settings that cannot be used. The error quotes no secret."""
        split_url(self.url)
        if self.mode not in MODES:
            hint = did_you_mean(self.mode, MODES)
            raise UsageError(f"'{self.mode}' is not a mode of the shared cache (${REMOTE_MODE})", hint=hint)
        if self.key and len(self.key) < _LEAST_KEY:
            hint = "make one: openssl rand -hex 32"
            raise UsageError(f"${REMOTE_KEY} has fewer than {_LEAST_KEY} characters", hint=hint)
        for name, text in (
            (REMOTE_KEY, self.key),
            (REMOTE_USER, self.user),
            (REMOTE_PASSWORD, self.password),
            (REMOTE_TOKEN, self.token),
        ):
            if not text.isprintable() or (name == REMOTE_TOKEN and not text.isascii()):
                raise UsageError(f"${name} has a character that cannot be sent, such as a line end")

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings | None:
        """Returns the settings in environment variables; None if they name no server. Raises UsageError if
        the settings cannot be used.
        """
        url = environment.get(REMOTE_URL, "")
        if not url:
            return None
        names = (REMOTE_KEY, REMOTE_USER, REMOTE_PASSWORD, REMOTE_TOKEN)
        key, user, password, token = (environment.get(name, "") for name in names)
        if not (user or password or token):
            user, password = _look_into_netrc(split_url(url).hostname or "", environment)
        mode = environment.get(REMOTE_MODE, "") or "read"
        return cls(url.rstrip("/"), mode.lower(), key, user, password, token)

    @classmethod
    def from_message(cls, texts: Mapping[str, Any]) -> Settings | None:
        """Returns the settings that a client has sent (see `to_message`); None if `texts` are not valid
        settings.
        """
        try:
            return cls(**texts) if all(isinstance(text, str) for text in texts.values()) else None
        except (TypeError, UsageError):
            return None

    def to_message(self) -> dict[str, str]:
        """Returns the settings as texts, for the daemon of the same user."""
        return asdict(self)

    @property
    def host(self) -> str:
        """The server's host and port, for messages."""
        return split_url(self.url).netloc


def split_url(url: str) -> SplitResult:
    """Returns the parts of a server's URL. Raises UsageError if it is not a valid URL, or contains
    credentials.
    """
    try:
        parts = urlsplit(url)
        is_place = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_place, parts = False, urlsplit("")
    if "@" in url or parts.query or parts.fragment:
        hint = f"set {REMOTE_USER} and {REMOTE_PASSWORD}, or {REMOTE_TOKEN}, or write them into ~/.netrc"
        raise UsageError(f"the shared cache's URL (${REMOTE_URL}) must not contain credentials", hint=hint)
    if not is_place or not url.isascii() or not url.isprintable() or " " in url:
        hint = "for example: http://cache.example.com:8080/buildtool, or redis://cache.example.com"
        raise UsageError(f"'{url}' is not the URL of a shared cache (${REMOTE_URL})", hint=hint)
    return parts


def _look_into_netrc(host: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Returns the user and the password of a host in $NETRC or ~/.netrc; empty texts where it has none."""
    home = environment.get("HOME", "")
    path = environment.get("NETRC") or (f"{home}/.netrc" if home else "")
    if path and os.path.isfile(path):  # noqa: PTH113
        import netrc

        with contextlib.suppress(OSError, UnicodeDecodeError, netrc.NetrcParseError):
            login, _, password = netrc.netrc(path).hosts.get(host) or ("", "", "")
            return login, password or ""
    return "", ""
