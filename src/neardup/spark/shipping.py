"""The package on its way to workers that do not have it."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The folder that an archive is unpacked in, below a worker's own.
_FOLDER = "neardup_shipped"
#: Python runs a module of this name when it starts. Numba knows compiled kernels by the path and the time of their
#: source, so the package moves to a place that is the same for each run: else each would compile them anew, and what
#: it compiled would stay behind. A module of the same name that the worker's Python has runs, too.
_MOVES = """
import os, shutil, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
place = os.path.join(cache, "neardup", "shipped-{digest}")
found = here
try:
    if not os.path.isdir(place):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        draft = tempfile.mkdtemp(prefix=".shipped-", dir=os.path.dirname(place))
        shutil.copytree(os.path.join(here, "neardup"), os.path.join(draft, "neardup"))
        for folder, _, names in os.walk(draft):
            for name in names:
                os.utime(os.path.join(folder, name), (0, 0))
        try:
            os.rename(draft, place)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
    if os.stat(place).st_uid == os.getuid():
        found = place
except OSError:
    pass
sys.path[:] = [path for path in sys.path if path != here]
this = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = this
sys.path.insert(0, found)
"""


@contextmanager
def shipped() -> Iterator[dict[str, str]]:
    """Give the settings with which a session's workers unpack this package and find it.

    Kernels and word lists are read as files, so workers need a folder: an archive does, --py-files does not.
    """
    own = Path(__file__).parent.parent
    files = [file for file in sorted(own.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(own)} {file.stat().st_size} ".encode() + file.read_bytes())
    with tempfile.TemporaryDirectory(prefix="neardup-ship-") as folder:
        path = Path(folder) / "neardup.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, Path(own.name) / file.relative_to(own))
            archive.writestr("sitecustomize.py", _MOVES.replace("{digest}", digest.hexdigest()[:16]))
        yield {"spark.archives": f"{path.as_uri()}#{_FOLDER}", "spark.executorEnv.PYTHONPATH": _FOLDER}
