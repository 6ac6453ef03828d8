"""Writes the golden values of tests/golden: what PyTorch answers, to be met by Taper's tests.

    pip install torch==2.13.0
    python scripts/make_golden.py          # writes into tests/golden/

Everything is computed in float64 on one thread from seeded inputs that float32 holds exactly, so a file serves as truth
for both types, and the same version of PyTorch gives the same files. tests/golden/README.md describes them; the cases
themselves are in scripts/golden/.
"""

import argparse
import importlib
import json
import pathlib
import pkgutil

import torch

import golden

FILE_LIMIT = 1_000_000
TOTAL_LIMIT = 9_000_000
RESULTS = ("output", "outputs", "grad_input", "grad_inputs", "grad_parameters", "parameters_after", "buffers_after", "values")


def files():
    """What every module of scripts/golden offers: a file's name and the function that yields its cases."""
    found = {}
    for module in pkgutil.iter_modules(golden.__path__):
        found.update(getattr(importlib.import_module(f"golden.{module.name}"), "FILES", {}))
    return found


def rounded(value):
    """Results to 14 digits, far below what the tests allow; a third of them would go into the rest."""
    if isinstance(value, float):
        return float(f"{value:.14g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def text(cases):
    """One case a line: a change of one case is a change of one line."""
    names = [case["name"] for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise SystemExit(f"names must be unique: {sorted(repeated)}")
    head = json.dumps({"torch": torch.__version__.split("+")[0]})[:-1]
    cases = [{key: rounded(value) if key in RESULTS else value for key, value in case.items()} for case in cases]
    lines = ",\n".join(json.dumps(case, allow_nan=False, separators=(",", ":")) for case in cases)
    return f'{head}, "cases": [\n{lines}\n]}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
    parser.add_argument("--out", type=pathlib.Path, default=default, help="directory to write into")
    parser.add_argument("--only", nargs="*", help="names of the files to make; all of them if left out")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    total = 0
    for name, make in files().items():
        if arguments.only and name not in arguments.only:
            continue
        cases = list(make())
        content = text(cases)
        if len(content) > FILE_LIMIT:
            raise SystemExit(f"{name}.json: expected at most {FILE_LIMIT} bytes, got {len(content)}")
        (out / f"{name}.json").write_text(content, encoding="ascii")
        total += len(content)
        print(f"{name}.json: {len(cases)} cases, {len(content)} bytes")
    if total > TOTAL_LIMIT:
        raise SystemExit(f"all files: expected at most {TOTAL_LIMIT} bytes, got {total}")


if __name__ == "__main__":
    main()
