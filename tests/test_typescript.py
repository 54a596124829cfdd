"""The TypeScript client: its generated types, a browser on a page of another origin. For the rest: `make client`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import karat
from support import browser
from support.served import served

ROOT = Path(__file__).parents[1]
CLIENT = ROOT / "clients" / "typescript"
sys.path.insert(0, str(ROOT / "docs"))

from typescript_types import types_of, typescript_types  # noqa: E402


def schema(properties, **more):
    return {"type": "object", "properties": properties, **more}


DOCUMENT = {
    "components": {
        "schemas": {
            "Sent": schema(
                {
                    "id": {"type": ["integer", "string", "null"], "description": "an id"},
                    "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "level": {"enum": ["a", "b"], "default": "a"},
                    "inner": {"$ref": "#/components/schemas/Open"},
                },
                required=["id"],
                additionalProperties=False,
                description="A body.",
            ),
            "Open": schema({"a-b": {"type": "boolean"}}, additionalProperties=True),
            "Answer": schema(
                {
                    "mean": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
                    "rows": {"anyOf": [{}, {"type": "null"}], "type": ["array", "null"], "items": {"type": "integer"}},
                    "any": {},
                },
                required=["mean"],
                additionalProperties={"type": "string"},
            ),
        }
    },
    "paths": {
        "/v1/do/{id}": {
            "post": {
                "summary": "Do it",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                    {"name": "Prefer", "in": "header", "schema": {"type": "string"}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Sent"}}}},
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}},
                    "400": {"content": {"application/json": {"schema": {"type": "string"}}}},
                },
            }
        }
    },
}
TYPES = """\
export interface Answer {
  mean: { [name: string]: number | null };
  rows?: number[] | null;
  any?: unknown;
  [name: string]: string;
}

export interface Open {
  "a-b"?: boolean | undefined;
  [name: string]: any;
}

/** A body. */
export interface Sent {
  /** an id */
  id: number | bigint | string | null;
  names?: string | readonly string[] | undefined;
  /** Default: "a" */
  level?: "a" | "b" | undefined;
  inner?: Open | undefined;
}

/** Every operation: its parameters, its body, and its answers in JSON by status. */
export interface Operations {
  /** Do it */
  "POST /v1/do/{id}": {
    path: {
      id: string;
    };
    query: {
      limit?: number;
    };
    body: Sent;
    answers: { 200: Answer };
  };
}
"""


def test_types_of_a_document():
    assert types_of(DOCUMENT).partition("*/\n\n")[2] == TYPES


def test_the_types_are_those_of_the_server():
    assert typescript_types() == (CLIENT / "src" / "schema.ts").read_text("utf-8"), "run `make docs`"


def test_the_package_has_no_dependency_and_no_address_of_a_registry():
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    assert "dependencies" not in package
    assert package["version"] == karat.__version__
    lock = (CLIENT / "package-lock.json").read_text("utf-8")
    assert not re.search(r"resolved|https?://", lock)
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_needs_nothing_but_fetch():
    for path in (CLIENT / "src").glob("*.ts"):
        text = path.read_text("utf-8")
        assert not re.findall(r'from "(?!\./)', text), path.name
        assert len(text.splitlines()) < 600, path.name


def _is_built(folder):
    """Whether the build is there and not older than its sources."""
    last = folder / "dist" / "cjs" / "package.json"
    sources = (folder / "src").glob("*.ts")
    return last.exists() and last.stat().st_mtime >= max(path.stat().st_mtime for path in sources)


def test_a_build_of_older_sources_does_not_count(tmp_path):
    source, last = tmp_path / "src" / "index.ts", tmp_path / "dist" / "cjs" / "package.json"
    for path in (source, last):
        path.parent.mkdir(parents=True)
    source.write_text("", "utf-8")
    assert not _is_built(tmp_path)
    last.write_text("{}", "utf-8")
    os.utime(source, (100, 100))
    os.utime(last, (200, 200))
    assert _is_built(tmp_path)
    os.utime(source, (300, 300))
    assert not _is_built(tmp_path)


@pytest.fixture
def page(tmp_path):
    """The address of an empty page that can import the client."""
    if shutil.which("node") is None:
        pytest.skip("needs Node 20 or newer, then: make client")
    if not _is_built(CLIENT):
        pytest.skip("needs the client built from the present sources: make client")
    if browser.program() is None:
        pytest.skip(browser.MISSING)
    shutil.copytree(CLIENT / "dist" / "esm", tmp_path / "client")
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>", "utf-8")
    handler = partial(_Quiet, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


IN_A_PAGE = """
import("/client/index.js").then(async ({ Karat, Evaluator, KaratError }) => {
  const karat = new Karat({ url: URL_OF_KARAT, retries: 0 });
  try {
    const run = await karat.evaluate({ samples: [{ retrieved: ["a", "b"], gold: ["b"] }], metrics: "rr" });
    const job = await karat.start("evaluate", { samples: [{ retrieved: ["b"], gold: ["b"] }], metrics: "rr" });
    const later = await job.wait();
    const evaluator = new Evaluator({ fiBaseUrl: URL_OF_KARAT, fiApiKey: "any", fiSecretKey: "any" });
    const inputs = { hypothesis: '["a"]', reference: '["a"]' };
    const { eval_results: [row] } = await evaluator.evaluate("recall_at_k", inputs);
    const wrong = await karat.evaluate({ samples: [], metrics: "recal" }).catch((error) => error.problem.status);
    return [run.mean.rr, later.mean.rr, row.reason, wrong];
  } catch (error) {
    return [error instanceof KaratError, error.kind, error.message];
  }
})
"""


def test_a_page_of_an_allowed_origin_asks_and_others_cannot(page):
    other = page.replace("127.0.0.1", "localhost")
    opened = browser.Browser()
    try:
        with served("--allow-origin", page) as server:
            allowed, refused = (_asked_from(opened, origin, server.url) for origin in (page, other))
        assert allowed == [0.5, 1, "Recall@1: 1.0", 400]
        hint = f"try karat serve --port {server.url.rpartition(':')[2]} --allow-origin {other}"
        assert refused == [True, "disconnected", f"cannot reach the server: Failed to fetch; {hint}"]
    finally:
        opened.close()


def _asked_from(opened, origin, url):
    opened.open(f"{origin}/index.html")
    return opened.run(IN_A_PAGE.replace("URL_OF_KARAT", json.dumps(url)))
