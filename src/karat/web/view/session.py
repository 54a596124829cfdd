"""Who may look, separate from keys: the browser that was opened with the token has a cookie from then on."""

from __future__ import annotations

from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import parse_qsl, quote, urlencode

from karat.web.messages import Reply
from karat.web.problems import Refused

_PARAMETER = "token"
_OPEN = "/assets/"
"""Paths that tell nothing about the data."""


class Session:
    """The token of a server, and the cookie that stands for it. Its name has the port: cookies do not know ports.

    The browser is started with a token of its own, which works once: other people can see with which address a program
    was started.
    """

    def __init__(self, token: str, port: int, once: str = "", command: str = "karat view") -> None:
        self._token, self._once, self._command = token, once, command
        self._name, self._cookie = f"karat-{port}", token_urlsafe(24)

    def check(self, path: str, query: str, headers: dict[str, str]) -> Reply | None:
        """None for the browser that was opened; a redirect that sets its cookie the first time; else refuse."""
        given = parse_qsl(query, keep_blank_values=True)
        tokens = [value for name, value in given if name == _PARAMETER]
        if any(map(self._is_token, tokens)):
            rest = urlencode([pair for pair in given if pair[0] != _PARAMETER])
            place = quote("/" + path.lstrip("/")) + (f"?{rest}" if rest else "")
            cookie = f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
            return Reply(303, "text/plain", {"Location": place, "Set-Cookie": cookie})
        if path.startswith(_OPEN) or _same(_cookie(headers.get("cookie", ""), self._name), self._cookie):
            return None
        problem = "the token is wrong" if tokens else f"this browser was not opened by {self._command}"
        raise Refused(403, f"{problem}: use the address that {self._command} printed when it started")

    def _is_token(self, given: str) -> bool:
        if self._once and _same(given, self._once):
            self._once = ""
            return True
        return _same(given, self._token)


def _same(given: str, secret: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _cookie(header: str, name: str) -> str:
    """The value of a cookie; other programs on this machine may have set any others."""
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for own, _, value in pairs if own == name), "")
