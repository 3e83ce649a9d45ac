"""The package on its way to workers that do not have it."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The folder that an archive is unpacked in, below a worker's own.
_FOLDER = "neardup_shipped"


@contextmanager
def shipped() -> Iterator[dict[str, str]]:
    """Give the settings with which a session's workers unpack this package and find it.

    Kernels and word lists are read as files, so workers need a folder: an archive does, --py-files does not.
    """
    own = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory(prefix="neardup-ship-") as folder:
        path = Path(folder) / "neardup.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(own.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, Path(own.name) / file.relative_to(own))
        yield {"spark.archives": f"{path.as_uri()}#{_FOLDER}", "spark.executorEnv.PYTHONPATH": _FOLDER}
