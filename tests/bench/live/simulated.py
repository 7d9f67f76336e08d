"""What this machine cannot show: bench-pipeline, the same code on rings in memory, with up to 128 CPUs."""
import json
import os
import subprocess
import tempfile

import perfd

NAME = "simulated"
PROGRAM = os.path.join(perfd.BUILD, "tests", "bench", "bench-pipeline")


def run(is_quick):
    """All that it found, with its table as `text`; None if it is not built."""
    if not os.path.exists(PROGRAM):
        print(f"not measured: {NAME}: {PROGRAM} is not built")
        return None
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as f:
        command = [PROGRAM, "--json", f.name, *["--quick"] * is_quick]
        table = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
        return {"text": table, **json.load(f)}
