"""Malformed and hostile requests as raw bytes: every kind that should be answered with a status from 400 to 499."""

from __future__ import annotations

import json
import random
import socket
from urllib.parse import urlsplit

POSTS = [
    "/v1/evaluate",
    "/v1/compare",
    "/v1/gate",
    "/v1/diagnose",
    "/sdk/api/v1/new-eval/",
    "/sdk/api/v1/evaluate-pipeline/",
]
GETS = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/runs",
    "/v1/metrics",
    "/v1/judges",
    "/v1/conventions",
    "/sdk/api/v1/get-evals/",
]
BODIES = [
    b"", b"{", b"}", b"[", b"nul", b"NaN", b"Infinity", b"'", b'"', b"\xff\xfe", b"\x00" * 100, b"{]",
    b'{"a":}', b"{'a': 1}",
    b"[" * 5000, b"[" * 200_000 + b"]" * 200_000, b'{"a":' * 100_000, b'{"samples": [' * 3, b"1e999", b"9" * 10_000,
    b'{"samples": 9' + b"9" * 5000 + b"}", b'{"samples": "\xff"}', b'{"samples": "\\ud800', b"\x1f\x8b\x08\x00junk",
    b"PAR1 is not Parquet", b"a=b&c=d", b"<xml/>", b"--boundary\r\n", b"\xef\xbb\xbf", "{\u00ab}".encode("utf-16"),
]  # fmt: skip
"""Bodies that are not JSON."""
VALUES = [
    None, True, 0, -1, 1e308, 10**30, "", "x", "\u0000", "\ud7ff\uffff", [], {}, [[]], [None], [1, "a", None], {"": ""},
    {"a": {"b": {"c": []}}}, "a" * 10_000, ["../../etc/passwd"], "/etc/passwd", "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "os:system", "tests/web/hostile.py:nothing", "__import__('os').system('true')", "claims(gpt-4o-mini)",
    "recall@0", "recall@-1", "recall@99999999999999999999", "recall@5,", "(" * 500, {"$ref": "#"}, {"__proto__": []},
]  # fmt: skip
"""Values of the wrong type, or without a meaning, for any field."""
FIELDS = {
    "/v1/evaluate": ["samples", "retrieved", "gold", "metrics", "judge", "convention", "fields"],
    "/v1/compare": ["runs", "baseline", "metrics"],
    "/v1/gate": ["run", "rules", "baseline"],
    "/v1/diagnose": ["run", "samples", "metric"],
    "/sdk/api/v1/new-eval/": ["eval_name", "inputs", "config"],
    "/sdk/api/v1/evaluate-pipeline/": ["project_name", "version", "eval_data"],
}
PATHS = [
    "/v1", "/v1/", "/v2/evaluate", "/sdk/", "/sdk/api/v1/", "/sdk/api/v1/new-eval", "/v1/runs/..",
    "/v1/runs/../../etc/passwd",
    "/v1/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/runs/..%5c..%5c", "/v1/runs/%00", "/v1/runs/a%00b",
    "/v1/runs/" + "a" * 5000,
    "/v1/runs/%ff%fe", "/v1/runs/.", "/v1/runs/karat.parquet", "/v1/runs//etc/passwd", "/v1/runs/none/table",
    "/v1/runs/none/items/1", "/v1/jobs/none", "/.git/config", "/docs/../../etc/passwd", "/static/../settings.py",
    "/v1/evaluate%0d%0aX: y", "/v1/runs/;ls", "/v1/runs/$(id)", "/v1/runs/<script>",
    "/sdk/api/v1/new-eval/?eval_id=" + "x" * 9000,
]  # fmt: skip
TYPES = ["text/html", "image/png", "application/x-www-form-urlencoded", "x", "\u00ff", "application/vnd.apache.parquet"]
METHODS = ["PUT", "PATCH", "DELETE", "TRACE"]


def raw(method, path, host, body=b"", **headers):
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{n.replace('_', '-')}: {v}" for n, v in headers.items())]
    if "Content_Length" not in headers and "Transfer_Encoding" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace") + body


def requests(host, count, seed=0):
    """So many requests, each with a name."""
    random_ = random.Random(seed)
    fixed = [
        *((f"{path} {body[:20]!r}", raw("POST", path, host, body, Content_Type="application/json"))
          for path in POSTS for body in BODIES),
        *((f"path {path[:40]}", raw("GET", path, host)) for path in PATHS),
        *((f"{method} {path}", raw(method, path, host)) for path in POSTS + GETS for method in METHODS),
        *((f"GET {path}", raw("GET", path, host)) for path in POSTS[:4]),
        *((f"POST {path}", raw("POST", path, host, b"{}")) for path in GETS),
        *((f"type {kind}", raw("POST", "/v1/evaluate", host, b"{}", Content_Type=kind))
          for kind in TYPES),
        *((f"length {length}", raw("POST", "/v1/evaluate", host, b"{}", Content_Length=length))
          for length in ("-1", "abc", "1e3", "99999999999999999999", "2, 3", "0x10")),
        ("no HTTP", b"hello\r\n\r\n"), ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50),
        ("bad chunk", raw("POST", "/v1/evaluate", host, b"zz\r\n{}\r\n0\r\n\r\n", Transfer_Encoding="chunked")),
        ("host", raw("GET", "/v1/runs", "example.org")),
        ("origin", raw("GET", "/v1/runs", host, Origin="http://example.org")),
        ("null origin", raw("GET", "/v1/runs", host, Origin="null")),
    ]  # fmt: skip
    yield from fixed
    for _ in range(count - len(fixed)):
        path = random_.choice(POSTS)
        fields = FIELDS[path]
        body = {name: random_.choice(VALUES) for name in random_.sample(fields, random_.randint(1, len(fields)))}
        yield (
            f"{path} {body!r:.200}",
            raw("POST", path, host, json.dumps(body).encode(), Content_Type="application/json"),
        )


def answer(url, request, timeout=20):
    """The status and the whole answer; 0 if the server closed the connection without one."""
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout) as connection:
        parts = []
        try:
            connection.sendall(request)
            while part := connection.recv(65536):
                parts.append(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
    text = b"".join(parts)
    return (int(text[9:12]) if text.startswith(b"HTTP/1.1 ") else 0), text
