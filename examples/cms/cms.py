"""A small CMS that saves an article only if it is new: before it does, it asks ``neardup serve``.

    neardup serve --store news.db &
    python examples/cms/cms.py articles.db
    curl -H 'Content-Type: application/json' -d '{"id": "a1", "title": "Oil", "text": "..."}' http://127.0.0.1:8322/

The id comes from whoever sends the article, such as the guid of a feed. Should this program stop between the verdict
and the saving, the sender tries again, and the service gives the same verdict again.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import neardup as nd


def save(database: str, known: nd.Client, article: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Save an article if it is new; return a status of HTTP and what to answer."""
    try:
        verdict = known.add(nd.Document(article["id"], article["text"], title=article.get("title", "")))
    except (KeyError, nd.InputError) as error:
        return 422, {"saved": False, "why": str(error)}
    except nd.NeardupError as error:
        # Nothing is saved that was not judged; the sender may try again.
        return 503, {"saved": False, "why": str(error)}
    if verdict.is_duplicate:
        return 409, {"saved": False, "repeats": verdict.of, "similarity": verdict.similarity}
    with closing(sqlite3.connect(database)) as connection, connection:
        row = article["id"], article.get("title", ""), article["text"]
        connection.execute("INSERT OR IGNORE INTO articles VALUES (?, ?, ?)", row)
    return 201, {"saved": True, "id": article["id"]}


def main() -> None:
    """Serve the CMS on this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--port", type=int, default=8322)
    parser.add_argument("--service", default="http://127.0.0.1:8321")
    given = parser.parse_args()
    with closing(sqlite3.connect(given.database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS articles (id TEXT PRIMARY KEY, title TEXT, text TEXT)")
    known = nd.Client(given.service)

    class Cms(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                article = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            except ValueError:
                article = {}
            status, said = save(given.database, known, article if isinstance(article, dict) else {})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(said).encode() + b"\n")

        def log_message(self, *said: object) -> None:
            """Say nothing."""

    with known, ThreadingHTTPServer(("127.0.0.1", given.port), Cms) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
