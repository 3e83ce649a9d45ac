"""Makes Spark's workers start and change tasks faster; those of a stream would be late on a busy machine.

PySpark comes from where it is installed, for the archive that Spark puts first has no bytecode: compiling it takes most
of a start. And after each task a worker collects garbage among all that it has imported, which takes longer than most
tasks.

Java waits ten seconds for the first worker of a stream, whatever the settings say, and PySpark connects when everything
is imported. So the connection is made here, before any import, and PySpark's own socket becomes it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from typing import Any

sys.path[:] = [entry for entry in sys.path if not entry.endswith(".zip")]
_module: Any = gc
_module.collect = gc.freeze

_path = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
if _path is not None:
    _early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _early.connect(_path)
    _connect: Any = socket.socket.connect

    def _take_early(self: socket.socket, address: Any) -> None:
        if address == _path:
            os.dup2(_early.fileno(), self.fileno())
            _early.close()
        else:
            _connect(self, address)

    _socket: Any = socket.socket
    _socket.connect = _take_early
