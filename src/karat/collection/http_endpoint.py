"""An HTTP endpoint as a retriever: a query goes in, JSON comes out. Needs nothing but the standard library."""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from string import Template
from threading import local
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from karat import __version__
from karat.collection.json_paths import JsonPath, NotThere, describe, find_documents, keys_of
from karat.collection.outcomes import CallFailed
from karat.errors import BadArgument
from karat.llm.faults import retry_after
from karat.llm.secrets import Secrets, hide, secret_headers
from karat.samples.objects import plain_items

DEFAULT_REQUEST = '{"query": "{query}", "k": {k}}'
_QUERY, _K = "{query}", "{k}"
_REDIRECTS = 5
_LARGEST = 64 << 20
"""Bytes of an answer; a larger one fails."""
_MOVED = (301, 302, 303, 307, 308)
_WAIT = (429, 503)
_AGAIN = (408, 425, *_WAIT, 500, 502, 504)
"""Statuses after which another call may succeed."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""Reasons of OpenSSL if a server answers without TLS."""
_BODY = 200
"""Characters of the first line of an error's body that are stored."""
FIELDS = ("id", "text", "doc", "start", "end", "score")
"""The fields of an item that `item` can map."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_TAG = re.compile(r"<(head|script|style)\b.*?(</\1\s*>|\Z)|<!--.*?-->|<[^>]*>?", re.IGNORECASE | re.DOTALL)
"""A tag of HTML, or a part that is not shown."""
_SOURCE_TEXTS = ("text", "content", "page_content", "body", "passage", "title")


class _Connections(dict[tuple[str, str], HTTPConnection]):
    """The open connections of a thread, which are closed with it."""

    def __del__(self) -> None:
        for connection in self.values():
            connection.close()


class _Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpEndpoint:
    """A retriever behind a URL. Every thread has a connection of its own, which stays open."""

    is_async = False

    def __init__(
        self,
        url: str,
        *,
        k: int,
        timeout: float | None = 30.0,
        method: str | None = None,
        request: str | None = None,
        headers: Sequence[str] = (),
        path: str | None = None,
        item: str | None = None,
    ) -> None:
        """Check everything at once, before the first call.

        Args:
            url: the address; `{query}` and `{k}` are replaced, and so are environment variables such as `$KEY`.
            k: the number of items to ask for.
            timeout: the seconds without an answer after which a call fails.
            method: "GET" or "POST"; by default GET if the URL has `{query}` and there is no request.
            request: the JSON that is posted, with `{query}` and `{k}`.
            headers: headers such as "Authorization: Bearer $TOKEN"; environment variables are replaced, never stored.
            path: where the documents are in the answer, such as "hits.hits[]".
            item: where the fields of an item are in each document: "id=_id,text=_source.body".
        """
        self.name = hide(url)
        self._k, self._timeout = k, timeout
        self._method = (method or ("GET" if _QUERY in url and request is None else "POST")).upper()
        self._url = _expand(url)
        _checked_url(self._url.replace(_QUERY, "q").replace(_K, "1"), self.name)
        self._request = self._template(url, request)
        self._headers = dict(map(_header, headers))
        used = [os.environ[name] for text in (url, *headers) for name in Template(text).get_identifiers()]
        self._secrets = Secrets([*used, *secret_headers(self._headers)])
        self._path = None if path is None else JsonPath(path)
        self._item = None if item is None else _mapping(item)
        given = {"target": url, "method": method, "request": request, "path": path, "item": item}
        self.settings = {name: _stored(value) for name, value in given.items() if value is not None}
        """The settings that decide what is retrieved; no headers and no secrets."""
        self._own = local()

    def _template(self, url: str, request: str | None) -> Any:
        """The JSON that is posted, with the place of the query; None with GET."""
        if self._method not in ("GET", "POST"):
            raise BadArgument("the method of an endpoint is GET or POST", got=self._method, hint="--method POST")
        if self._method == "GET":
            if request is not None:
                raise BadArgument("a GET request has no body", got=request, hint="--method POST")
            if _QUERY not in url:
                hint = f"{self.name}{'&' if '?' in url else '?'}q={{query}}"
                raise BadArgument("the URL of a GET request needs {query}", got=self.name, hint=hint)
            return None
        text = DEFAULT_REQUEST if request is None else request
        try:
            template = json.loads(text.replace(_K, str(self._k)))
        except ValueError as error:
            raise BadArgument(f"the request is not JSON: {error}", got=text, hint=DEFAULT_REQUEST) from None
        if _QUERY not in json.dumps(template) and _QUERY not in url:
            raise BadArgument("the request has no {query}", got=text, hint=DEFAULT_REQUEST)
        return template

    def ask(self, query: str) -> list[Any]:
        """The items for a query; messages of failures have no secrets."""
        try:
            return self._answered(query)
        except CallFailed as error:
            raise CallFailed(self._secrets.message(str(error)), again=error.again, pause=error.pause) from None

    def _answered(self, query: str) -> list[Any]:
        url = self._url.replace(_QUERY, quote(query, safe="", errors="replace")).replace(_K, str(self._k))
        body = None if self._request is None else json.dumps(_filled(self._request, query)).encode()
        reply = self._follow(url, body)
        if not 200 <= reply.status < 300:
            raise self._refused(reply)
        try:
            answer = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            line = _first_line(reply.body)
            raise CallFailed(f"the answer is not JSON: {line or 'it is empty'}", again=False) from error
        return self._items(answer)

    def _items(self, answer: Any) -> list[Any]:
        try:
            found = find_documents(answer) if self._path is None else self._path.find(answer)
        except NotThere as error:
            hint = "--path says where the documents are" if self._path is None else f"--path {self._path.text}"
            raise CallFailed(f"{error} ({hint})", again=False) from None
        if self._path is not None and isinstance(found, Mapping):
            found = [found]
        if self._item is None:
            items = plain_items([_hit(one) for one in found] if isinstance(found, list) else found)
            for document, item in zip(found, items, strict=False):
                if isinstance(item, dict) and item.keys().isdisjoint(("id", "text", "doc")):
                    raise _nameless(document)
            return items
        if not isinstance(found, list):
            raise CallFailed(f"the documents are {describe(found)}, not a list", again=False)
        return [_mapped(one, self._item) for one in found]

    def _refused(self, reply: _Reply) -> CallFailed:
        line = _first_line(reply.body)
        pause = retry_after(reply.headers) if reply.status in _WAIT else None
        text = f"HTTP {reply.status}: {line}" if line else f"HTTP {reply.status}"
        return CallFailed(text, again=reply.status in _AGAIN, pause=pause)

    def _follow(self, url: str, body: bytes | None) -> _Reply:
        """The reply, after redirections; headers of the user go to the first host only."""
        method, first = self._method, urlsplit(url)
        for _ in range(_REDIRECTS + 1):
            parts = urlsplit(url)
            own = self._headers if parts[:2] == first[:2] else {}
            reply = self._reply(method, parts, body, own)
            target = reply.headers.get("location")
            if reply.status not in _MOVED or not target:
                return reply
            url = urljoin(url, target)
            _check_redirect(first, urlsplit(url))
            if reply.status in (301, 302, 303):
                method, body = "GET", None
        raise CallFailed(f"more than {_REDIRECTS} redirections", again=False)

    def _reply(self, method: str, parts: SplitResult, body: bytes | None, headers: Mapping[str, str]) -> _Reply:
        kept: _Connections = self._own.__dict__.setdefault("connections", _Connections())
        place = (parts.scheme, parts.netloc)
        reused = place in kept
        connection = kept.pop(place, None) or _connect(parts, self._timeout)
        try:
            reply = _exchange(connection, method, parts, body, headers)
        except (OSError, HTTPException) as error:
            connection.close()
            if reused and not isinstance(error, TimeoutError):  # the server has closed it meanwhile
                return self._reply(method, parts, body, headers)
            raise _broken(error, self._timeout) from error
        if connection.sock is not None:
            kept[place] = connection
        return reply


@cache
def _verified() -> ssl.SSLContext:
    """The settings of TLS, which verify certificates; loading those of the system takes a while."""
    return ssl.create_default_context()


def _connect(parts: SplitResult, timeout: float | None) -> HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        return HTTPSConnection(host, parts.port, timeout=timeout, context=_verified())
    return HTTPConnection(host, parts.port, timeout=timeout)


def _exchange(
    connection: HTTPConnection, method: str, parts: SplitResult, body: bytes | None, headers: Mapping[str, str]
) -> _Reply:
    usual = {"accept": "application/json", "user-agent": f"karat/{__version__}"}
    usual |= {} if body is None else {"content-type": "application/json"}
    given = {name.lower() for name in headers}
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    own = {name: value for name, value in usual.items() if name not in given}
    connection.request(method, target, body=body, headers={**own, **headers})
    response: HTTPResponse = connection.getresponse()
    content = response.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        connection.close()
        raise CallFailed(f"the answer has more than {_LARGEST >> 20} MiB", again=False)
    return _Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _broken(error: Exception, timeout: float | None) -> CallFailed:
    """The failure of a connection, in words; a certificate that is not valid stays so."""
    if isinstance(error, TimeoutError):
        return CallFailed(f"timed out after {timeout:g} s" if timeout else "timed out")
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return CallFailed("the server does not use TLS (http://… instead of https://…)", again=False)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return CallFailed(f"{type(error).__name__}: {text}", again=not isinstance(error, ssl.SSLCertVerificationError))


def _check_redirect(first: SplitResult, to: SplitResult) -> None:
    if to.scheme not in ("http", "https") or not to.hostname or (first.scheme == "https" and to.scheme != "https"):
        raise CallFailed(f"redirected to {to.scheme}://{to.hostname or ''}, which is refused", again=False)


def _expand(text: str) -> str:
    """The text with the values of environment variables, `$NAME` or `${NAME}`; `$$` is a dollar sign."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        name = error.args[0]
        raise BadArgument(
            f"the environment variable {name} is not set", got=hide(text), hint=f"export {name}=…"
        ) from None
    except ValueError:
        raise BadArgument("a dollar sign begins an environment variable", got=hide(text), hint="$$") from None


def _stored(text: str) -> str:
    """A setting without secrets; a digest tells it from others that differ in them only."""
    shown = hide(text)
    return text if shown == text else f"{shown} ({blake2b(text.encode(), digest_size=4).hexdigest()})"


def _checked_url(url: str, given: str) -> None:
    """Refuse an address that cannot be called; messages have only what was typed."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or any(char.isspace() or ord(char) < 32 for char in url):
        raise BadArgument("not the URL of an endpoint", got=given, hint="https://localhost:8000/search")
    if parts.username is not None:
        raise BadArgument("the URL has a user name", hint="--header 'Authorization: Basic $CREDENTIALS'")


def _header(text: str) -> tuple[str, str]:
    """A header from `Name: value`; its value is never shown."""
    name, colon, value = text.partition(":")
    if not colon or not _TOKEN.fullmatch(name.strip()):
        problem = "a header is a name, a colon and a value"
        raise BadArgument(problem, got=name.strip(), hint="--header 'Authorization: Bearer $TOKEN'")
    try:
        expanded = _expand(value.strip())
    except BadArgument as error:
        raise BadArgument(f"header {name.strip()}: {error.problem}", hint=error.hint) from None
    if not expanded.isprintable() or not expanded.isascii():
        raise BadArgument(f"header {name.strip()}: its value has characters that a header cannot have")
    return name.strip(), expanded


def _mapping(text: str) -> dict[str, JsonPath]:
    """The paths of the fields of an item, from `id=_id,text=_source.body`."""
    found: dict[str, JsonPath] = {}
    for part in text.split(","):
        name, equals, path = (one.strip() for one in part.partition("="))
        if name not in FIELDS or not equals or name in found:
            hint = "id=_id,text=_source.body,score=_score"
            raise BadArgument(f"expected fields among {', '.join(FIELDS)}, each with a path", got=text, hint=hint)
        found[name] = JsonPath(path)
    if not found.keys() & {"id", "text", "doc"}:
        raise BadArgument("an item needs an id, a text or a document", got=text, hint=f"id=_id,{text}")
    return found


def _mapped(document: Any, item: Mapping[str, JsonPath]) -> dict[str, Any]:
    try:
        return {name: path.find(document) for name, path in item.items()}
    except NotThere as error:
        raise CallFailed(f"{str(error).replace('the answer', 'a document')} (--item)", again=False) from None


def _nameless(document: Mapping[str, Any]) -> CallFailed:
    """The failure for a document whose id or text is under an unknown name, with what it has."""
    inner = [f"{name}.{one}" for name, value in document.items() if isinstance(value, Mapping) for one in value]
    known = next((path for path in inner if path.rpartition(".")[2] in ("id", "_id", "chunk_id", "doc_id")), "FIELD")
    fields = keys_of(dict.fromkeys([*(name for name, one in document.items() if not isinstance(one, Mapping)), *inner]))
    problem = f'a document has neither "id" nor "text", but {fields} (--item id={known})'
    return CallFailed(problem, again=False)


def _hit(document: Any) -> Any:
    """A hit of Elasticsearch or OpenSearch as an item; other documents as they are."""
    if not (isinstance(document, Mapping) and "_id" in document):
        return document
    hit = {"id": document["_id"]}
    if isinstance(document.get("_score"), int | float):
        hit["score"] = document["_score"]
    source = document.get("_source")
    fields = source if isinstance(source, Mapping) else {}
    text = next((fields[name] for name in _SOURCE_TEXTS if isinstance(fields.get(name), str)), None)
    return hit if text is None else hit | {"text": text}


def _filled(template: Any, query: str) -> Any:
    """The template with the query in its place."""
    if isinstance(template, str):
        return template.replace(_QUERY, query)
    if isinstance(template, dict):
        return {name: _filled(value, query) for name, value in template.items()}
    return [_filled(one, query) for one in template] if isinstance(template, list) else template


def _first_line(body: bytes) -> str:
    """The first line of a text; of a page, its text without tags, or its title."""
    text = body[: 40 * _BODY].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        text = " ".join(_TAG.sub(" ", text).split()) or (title[1].strip() if title else "")
    return text.partition("\n")[0][:_BODY]
