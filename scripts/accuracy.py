"""Test accuracy of the example configs, over five seeds each.

    python3 scripts/accuracy.py build/release/taper [CONFIG...]

Prints one line a config with the median; needs nothing but Python.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ["examples/configs/forum.json", "examples/configs/two_blocks.json", "examples/configs/digits.json",
           "examples/configs/residual.json"]


def accuracy(taper, config, seed, folder):
    run = Path(folder) / f"{Path(config).stem}-{seed}"
    command = [taper, "train", config, "--seed", str(seed), "--out", str(run), "--progress", "none", "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads((run / "eval/test.json").read_text())["metrics"]["accuracy"]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    taper = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for config in sys.argv[2:] or CONFIGS:
            values = [accuracy(taper, config, seed, folder) for seed in range(1, 6)]
            shown = " ".join(f"{100 * value:.2f}" for value in values)
            print(f"{config}: median {100 * statistics.median(values):.2f} % of {shown}")
