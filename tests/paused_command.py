"""Runs the command up to its first write to the file of -o, where it waits for a signal; SIGUSR1 lets it go on."""

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
        # signal.pause() would miss a signal that arrives just before it.
        while OutputFile.write is pausing:
            time.sleep(0.01)
    return written


signal.signal(signal.SIGUSR1, lambda *_: setattr(OutputFile, "write", write))
OutputFile.write = pausing  # type: ignore[assignment, method-assign]
main()
