"""A peer's process: a library that does tasks and times itself."""

import array
import os
import subprocess
from pathlib import Path

# What holds each library to a set of instructions.
CAPABILITIES = {
    "avx2": {
        "TAPER_CPU_CAPABILITY": "avx2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "LIBXSMM_TARGET": "hsw",
    },
}


def hold_to(capability):
    """Holds what is started from now on to a set of instructions; None: to those of the processor."""
    os.environ.pop("OPENBLAS_CORETYPE", None)  # would hold OpenBLAS back
    os.environ.update(CAPABILITIES.get(capability, {}))


def widen_openblas(program):
    """OpenBLAS takes processors newer than itself for old ones: names the widest instructions that this one has."""
    with Peer(program, 1) as openblas:
        is_held_back = any(core in openblas.version for core in ("Prescott", "Nehalem", "Sandybridge"))
    flags = Path("/proc/cpuinfo").read_text().split()
    if is_held_back and "avx2" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX" if "avx512vl" in flags else "Haswell"


SAMPLE = 2e-3  # seconds that a sample takes about


class Refused(Exception):
    """The peer failed on a task; says why."""


class Peer:
    def __init__(self, program, threads):
        self.name = program.name.removeprefix("peer-")
        self.threads = threads
        self.program = program
        self.start()

    def start(self):
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "OPENBLAS_NUM_THREADS": str(self.threads)}
        self.process = subprocess.Popen(
            [self.program, str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.version = self.line()

    def line(self):
        text = self.process.stdout.readline().decode().rstrip("\n")
        if not text:
            status = self.process.wait()
            self.start()
            raise Refused(f"ended with status {status}")
        return text

    def ask(self, command):
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()
        answer = self.line()
        if answer.startswith("error: "):
            raise Refused(answer.removeprefix("error: "))
        return answer

    def prepare(self, task):
        """Makes the task ready and does it once. False: the library does not offer it."""
        return self.ask(f"task {task}") == "ready"

    def values(self):
        """Numbers that the last repetition computed; before any sample, the only one: steps of a training differ."""
        out = array.array("d")
        out.frombytes(self.process.stdout.read(8 * int(self.ask("values"))))
        return out

    def sample(self, repetitions):
        """Seconds a repetition, by the wall and by the processor."""
        wall, cpu = map(float, self.ask(f"sample {repetitions}").split())
        return wall / repetitions, cpu / repetitions

    def repetitions_for(self, seconds):
        """How many repetitions take about this long."""
        repetitions = 1
        while True:
            taken = self.sample(repetitions)[0] * repetitions
            if taken >= seconds / 2 or repetitions >= 1 << 24:
                return max(1, round(repetitions * seconds / max(taken, 1e-9)))
            repetitions = min(10 * repetitions, max(2 * repetitions, int(repetitions * seconds / max(taken, 1e-9))))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def difference(ours, theirs):
    """The largest difference, relative to the largest value; infinite where numbers are missing or are none."""
    if len(ours) != len(theirs) or any(x != x for x in ours) or any(x != x for x in theirs):
        return float("inf")
    largest = max(map(abs, theirs), default=0)
    worst = max((abs(a - b) for a, b in zip(ours, theirs)), default=0)
    return worst / largest if largest > 0 else worst
