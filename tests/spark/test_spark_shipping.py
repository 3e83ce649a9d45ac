"""The package as it is sent to workers, unpacked by a Python that does not have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from neardup.spark.session import shipped

ASK = """
import json, os, sys
import neardup, sitecustomize
found = {"package": neardup.__file__, "own": os.environ.get("OWN", ""), "time": os.stat(neardup.__file__).st_mtime}
print(json.dumps(found))
"""


def test_workers_find_the_package_at_the_same_place_in_each_run(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'ran'\n")
    found = []
    with shipped() as settings:
        archive, folder = settings["spark.archives"].removeprefix("file://").split("#")
        for run, home in (("one", tmp_path / "home"), ("two", tmp_path / "home"), ("three", Path("/proc"))):
            zipfile.ZipFile(archive).extractall(tmp_path / run / folder)
            path = f"{settings['spark.executorEnv.PYTHONPATH']}:{own}"
            environment = {"PYTHONPATH": path, "HOME": str(home), "PATH": os.environ["PATH"]}
            asked = [sys.executable, "-c", ASK]
            told = subprocess.run(asked, cwd=tmp_path / run, env=environment, capture_output=True, check=True)
            found.append(json.loads(told.stdout))
    [place] = (tmp_path / "home" / ".cache" / "neardup").glob("shipped-*")
    assert found[0] == found[1] == {"package": str(place / "neardup" / "__init__.py"), "own": "ran", "time": 0}
    # Where nothing may be kept, it stays where it was unpacked.
    assert found[2]["package"] == str(tmp_path / "three" / folder / "neardup" / "__init__.py")
    assert found[2]["own"] == "ran"
    assert (place / "neardup" / "kernels" / "prefixes.py").exists()
    assert place.stat().st_mode & 0o077 == 0
