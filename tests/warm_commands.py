"""Load the modules and kernels of ``neardup serve`` and ``watch``; a process with this module is forked into them."""

import uvicorn.loops.auto
import uvicorn.protocols.http.auto  # noqa: F401

import neardup.cli.app
import neardup.cli.serve
import neardup.service.app
import neardup.watch.watcher  # noqa: F401
from neardup.service.page import frame
from neardup.stream.document import Document
from neardup.stream.index import Index

frame(False)
for recipe in (None, "ddd"):
    with Index(recipe, window="endless") as index:
        index.add_many(Document(str(number), f"some words to warm up with {number}", 0.0) for number in range(3))
