"""A small CMS that saves an article only if ``neardup serve`` judges it to be new.

    neardup serve --store news.db &
    python examples/cms/cms.py articles.db
    curl -H 'Content-Type: application/json' -d '{"id": "a1", "title": "Oil", "text": "..."}' http://127.0.0.1:8322/

The sender of an article gives its id, such as the guid of a feed. If this program stops between the verdict and saving
the article, the sender tries again, and the service returns the same verdict, as one that it has known.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import neardup as nd


def save(database: str, client: nd.Client, article: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Save an article if it is new; return the HTTP status and the answer."""
    try:
        verdict = client.add(nd.Document(article["id"], article["text"], title=article.get("title", "")))
    except (KeyError, nd.InputError) as error:
        return 422, {"saved": False, "why": str(error)}
    except nd.NeardupError as error:
        # An article that was not judged is not saved; the sender may try again.
        return 503, {"saved": False, "why": str(error)}
    if verdict.is_duplicate:
        return 409, {"saved": False, "repeats": verdict.of, "similarity": verdict.similarity}
    with closing(sqlite3.connect(database)) as connection, connection:
        row = article["id"], article.get("title", ""), article["text"]
        connection.execute("INSERT OR IGNORE INTO articles VALUES (?, ?, ?)", row)
    # An article that the service has known is saved already, unless this program stopped before it saved it.
    return 200 if verdict.known else 201, {"saved": True, "id": article["id"]}


def main() -> None:
    """Serve the CMS on this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--port", type=int, default=8322)
    parser.add_argument("--service", default="http://127.0.0.1:8321")
    arguments = parser.parse_args()
    with closing(sqlite3.connect(arguments.database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS articles (id TEXT PRIMARY KEY, title TEXT, text TEXT)")
    client = nd.Client(arguments.service)

    class Cms(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                article = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            except ValueError:
                article = {}
            status, answer = save(arguments.database, client, article if isinstance(article, dict) else {})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode() + b"\n")

        def log_message(self, *values: object) -> None:
            """Log nothing."""

    with client, ThreadingHTTPServer(("127.0.0.1", arguments.port), Cms) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
