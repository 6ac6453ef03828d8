"""Plants single-line mistakes in a copy of the tree, one after another: the tests must notice every one.

    python3 scripts/mutants.py --work build/mutants            # plants all; writes tests/MUTANTS.md
    python3 scripts/mutants.py --work build/mutants --only conv  # those whose name contains "conv"
    python3 scripts/mutants.py --check                        # only: does every fragment stand in its file once?

A mutant is a file, a fragment that stands in it exactly once, what takes its place, and the tests that should notice it
(a Catch2 filter). Those run first; if they pass, all tests run but those of the program. A mutant that hangs or crashes is
noticed too; one that does not compile is a mistake of the table.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from mutant_table import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVERYTHING = "~[slow]"
TIME_LIMIT = 300


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def check():
    """What is wrong with the table, one line each."""
    problems = []
    names = [mutant.name for mutant in MUTANTS]
    problems += [f"{name}: the name stands twice" for name in set(names) if names.count(name) > 1]
    for mutant in MUTANTS:
        count = (ROOT / mutant.file).read_text().count(mutant.fragment)
        if count != 1:
            problems.append(f"{mutant.name}: the fragment stands {count} times in {mutant.file}")
    return problems


def copy_tree(work):
    tracked = run(["git", "ls-files", "-z"], cwd=ROOT, check=True).stdout.split("\0")
    for name in filter(None, tracked):
        source, target = ROOT / name, work / "tree" / name
        if source.is_file() and (not target.exists() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def build(work, jobs):
    # Relative paths let ccache find what a build of the tree itself has compiled.
    environment = {**os.environ, "CCACHE_BASEDIR": str(work / "tree"), "CCACHE_NOHASHDIR": "1"}
    return run(["ninja", "-C", str(work / "tree" / "build"), "-j", str(jobs), "taper-tests"], env=environment)


def prepare(work, jobs, options):
    copy_tree(work)
    options += ["-DTAPER_BUILD_EXAMPLES=OFF", "-DTAPER_BUILD_BENCH=OFF", "-DTAPER_BUILD_CLI=OFF"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    done = run(["cmake", "-G", "Ninja", "-S", str(work / "tree"), "-B", str(work / "tree" / "build"), *options])
    if done.returncode == 0:
        done = build(work, jobs)
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:])


def failing_test(work, selection):
    """The name of the first test that fails, a word for what else went wrong, or None when all pass."""
    binary = work / "tree" / "build" / "tests" / "taper-tests"
    try:
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        done = run([str(binary), selection, "--abort", "-r", "xml"], cwd=work, timeout=TIME_LIMIT, errors="replace",
                   env=environment)
    except subprocess.TimeoutExpired:
        return "(hangs)"
    if done.returncode == 0:
        return None
    names = re.findall(r'<TestCase name="([^"]*)"', done.stdout)
    if not names:
        return "(crashes)" if done.returncode < 0 else None
    return names[-1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&quot;", '"')


def plant(work, mutant, jobs):
    """What killed the mutant, or None."""
    target = work / "tree" / mutant.file
    original = target.read_text()
    target.write_text(original.replace(mutant.fragment, mutant.replacement))
    try:
        done = build(work, jobs)
        if done.returncode != 0:
            print(f"{mutant.name} does not compile:\n{done.stdout[-2000:]}")
            return None
        return (mutant.tests and failing_test(work, mutant.tests)) or failing_test(work, EVERYTHING)
    finally:
        target.write_text(original)


def key_of(mutant):
    """Changes when the mutant or its file does."""
    text = (ROOT / mutant.file).read_text().replace(mutant.fragment, mutant.replacement)
    return hashlib.sha256(f"{mutant.file}\n{text}".encode()).hexdigest()


class Known:
    """What earlier runs in the same folder found out of mutants that are still the same."""

    def __init__(self, work):
        self.path = work / "killers.json"
        self.killers = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, mutant):
        return self.killers.get(key_of(mutant))

    def put(self, mutant, killer):
        self.killers[key_of(mutant)] = killer
        self.path.write_text(json.dumps(self.killers, indent=1))


def report(results):
    killed = sum(1 for _, killer in results if killer)
    lines = [
        "# Planted mistakes",
        "",
        "Single-line mistakes that `python3 scripts/mutants.py` plants in a copy of the tree, and the first test that",
        f"fails for each: {killed} of {len(results)} are noticed. The table of mistakes is `scripts/mutant_table.py`.",
        "",
        "| mistake | file | noticed by |",
        "|---|---|---|",
    ]
    lines += [f"| {m.name} | `{m.file}` | {killer or '**nothing**'} |" for m, killer in results]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="folder for the copy, its build and what is known; taken up again when it is there")
    parser.add_argument("--only", default="", help="plant those whose name contains this; no report is written")
    parser.add_argument("--check", action="store_true", help="check the table and plant nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cmake", nargs="*", default=[], help="further options of the build, without their -")
    arguments = parser.parse_args()
    problems = check()
    if problems or arguments.check or not arguments.work:
        print("\n".join(problems) or f"{len(MUTANTS)} mutants, every fragment stands in its file once")
        sys.exit(1 if problems else 0)
    work = arguments.work.resolve()
    prepare(work, arguments.jobs, ["-" + option for option in arguments.cmake])
    before = failing_test(work, EVERYTHING)
    if before:
        sys.exit(f"the tests fail without any mutant: {before}")
    results, known = [], Known(work)
    for mutant in MUTANTS:
        if arguments.only not in mutant.name:
            continue
        killer = known.get(mutant) or plant(work, mutant, arguments.jobs)
        if killer:
            known.put(mutant, killer)
        results.append((mutant, killer))
        print(f"{'killed' if killer else 'SURVIVED'}: {mutant.name}: {killer or ''}", flush=True)
    if not arguments.only:
        (ROOT / "tests" / "MUTANTS.md").write_text(report(results))
    sys.exit(0 if all(killer for _, killer in results) else 1)


if __name__ == "__main__":
    main()
