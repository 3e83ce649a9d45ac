"""Makes Spark's workers start and change tasks faster; those of a stream would be late on a busy machine.

PySpark comes from where it is installed, for the archive that Spark puts first has no bytecode: compiling it takes most
of a start, and Spark waits ten seconds for the worker of a stream. And after each task a worker collects garbage among
all that it has imported, which takes longer than most tasks.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

sys.path[:] = [entry for entry in sys.path if not entry.endswith(".zip")]
_module: Any = gc
_module.collect = gc.freeze
