"""Load everything that a service needs, so that a process that imports this module can be forked into services."""

import uvicorn.loops.auto
import uvicorn.protocols.http.auto  # noqa: F401

import neardup.cli.app
import neardup.cli.serve
import neardup.service.app  # noqa: F401
from neardup.service.page import frame
from neardup.stream.document import Document
from neardup.stream.index import Index

frame(False)
with Index(window="endless") as index:
    index.add_many(Document(str(number), f"some words to warm up with {number}") for number in range(3))
