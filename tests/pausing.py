"""Runs the command up to its first write to what -o names, where it waits for a signal; after SIGUSR1 it goes on."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

from neardup.__main__ import main
from neardup.documents.output import OutputFile

write = OutputFile.write


def pausing(file: OutputFile, data: Any) -> int:
    written = write(file, data)
    if file.name == sys.argv[sys.argv.index("-o") + 1]:
        # Not signal.pause(): a signal that arrives just before it would be waited for in vain.
        while OutputFile.write is pausing:
            time.sleep(0.01)
    return written


signal.signal(signal.SIGUSR1, lambda *_: setattr(OutputFile, "write", write))
OutputFile.write = pausing  # type: ignore[assignment, method-assign]
main()
