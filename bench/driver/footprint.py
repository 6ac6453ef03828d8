"""What including, building, linking and starting cost. Limits are those that are asked for."""

import os
import shutil
import subprocess
import time
from pathlib import Path

COMPILER = os.environ.get("CXX", "c++")


def measured(*command):
    """Seconds by the wall and by the processor, of all it started, and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CCACHE_DISABLE": "1"},
    )
    printed = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        raise subprocess.CalledProcessError(status, command)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, printed


class Library:
    """The smallest program on one library: how to compile and link it."""

    def __init__(self, source, includes, libraries, folder, *options):
        self.source, self.libraries, self.folder = source, libraries, folder
        self.flags = ["-std=c++20", *options, *(f"-isystem{include}" for include in includes)]

    def compile(self, times):
        """Seconds of the processor that the header costs."""
        return min(measured(COMPILER, *self.flags, "-fsyntax-only", self.source)[1] for _ in range(times))

    def start(self, program):
        """Seconds and bytes of memory of the smallest program."""
        measured(
            COMPILER,
            *self.flags,
            "-O1",
            self.source,
            "-o",
            program,
            f"-L{self.folder}",
            f"-Wl,-rpath,{self.folder}",
            "-Wl,--no-as-needed",
            *(f"-l{library}" for library in self.libraries),
        )
        runs = [measured(program) for _ in range(30)]
        return min(wall for wall, _, _ in runs), min(1024 * int(printed) for _, _, printed in runs)

    def size(self):
        """Bytes of its shared objects."""
        return sum((self.folder / f"lib{library}.so").resolve().stat().st_size for library in self.libraries)


def build_shared(root, build):
    """A clean build of the shared library and the program, without a compiler cache.

    Seconds of the processor on each of two cores: what the build takes when nothing else runs, as it keeps both busy.
    """
    shutil.rmtree(build, ignore_errors=True)
    options = [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_SHARED_LIBS=ON",
        "-DTAPER_BUILD_TESTS=OFF",
        "-DTAPER_BUILD_EXAMPLES=OFF",
        "-DTAPER_BUILD_CLI=ON",
    ]
    configured = measured("cmake", "-G", "Ninja", "-S", root, "-B", build, *options)[1]
    built = measured("cmake", "--build", build, "--parallel", 2)[1]
    measured("strip", "--strip-unneeded", (build / "libtaper.so").resolve())
    return configured + built / 2


def torch_of(build, source):
    """The PyTorch that the benchmarks were built with; None where there is none."""
    cache = (build / "CMakeCache.txt").read_text().splitlines()
    folder = next((line.split("=", 1)[1] for line in cache if line.startswith("TAPER_TORCH_FOUND:")), "")
    if not folder:
        return None
    include = Path(folder) / "include"
    return Library(
        source,
        [include, include / "torch/csrc/api/include"],
        ["torch", "torch_cpu", "c10"],
        Path(folder) / "lib",
        "-DTAPER_BENCH_TORCH",
    )


def footprint(root, build):
    """Rows of what is measured, its limit, and the same of the newest PyTorch where it is found."""
    shared = build / "shared"
    build_seconds = build_shared(root, shared)
    source = root / "bench/smallest.cpp"
    ours, theirs = Library(source, [root / "include"], ["taper"], shared), torch_of(build, source)
    seconds, memory = ours.start(shared / "smallest")
    peer_seconds, peer_memory = theirs.start(shared / "smallest-torch") if theirs else (None, None)

    def entry(what, value, limit, unit, peer, asked=None):
        met = value <= limit or bool(asked and peer and peer / value >= asked)
        return {"row": what, "value": value, "limit": limit, "unit": unit, "peer": peer, "asked": asked, "met": met}

    return [
        # The limit was set on a machine where PyTorch's header took 10.3 s.
        entry(
            "including everything, seconds of the compiler",
            ours.compile(7),
            0.35,
            "s",
            theirs and theirs.compile(1),
            asked=10.3 / 0.35,
        ),
        entry("shared library, stripped", ours.size() / 1e6, 3, "MB", theirs and theirs.size() / 1e6),
        entry("start of the smallest program", seconds * 1e3, 5, "ms", theirs and peer_seconds * 1e3),
        entry("memory of the smallest program", memory / 1e6, 8, "MB", theirs and peer_memory / 1e6),
        entry("clean build of library and program, two cores", build_seconds, 90, "s", None),
    ]
