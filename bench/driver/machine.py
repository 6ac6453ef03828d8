"""What the machine can do at most, and how long a row's work must take at least."""

import json
import math
import subprocess

from peer import SAMPLE, Peer

KINDS = ("read", "write", "copy", "update")


def measured(program):
    return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


class Peak:
    """Float32 operations a second that one core does at this moment, with the set of instructions that is the fastest
    for it, as in the machine's constants.
    """

    def __init__(self, program, clock):
        self.peer, self.clock = Peer(program, 1), clock
        flops = []
        while self.take_set(len(flops)):
            flops.append(max(self.sample() for _ in range(20)))
        self.take_set(flops.index(max(flops)))

    def take_set(self, number):
        if not self.peer.prepare(f"multiply_add set={number}"):
            return False
        self.flops = self.peer.values()[0]
        self.repetitions = self.peer.repetitions_for(SAMPLE)
        return True

    def sample(self):
        return self.flops / self.peer.sample(self.repetitions)[self.clock == "cpu"]


class Machine:
    def __init__(self, program):
        self.program = program
        self.constants = measured(program)

    def measure_again(self):
        """Keeps the best of each constant: other programs may have been in the way of one measurement."""
        again = measured(self.program)
        for name in ("peak_float32", "peak_float64", "divisions", "roots"):
            self.constants[name] = max(self.constants[name], again[name])
        self.constants["fork"] = min(self.constants["fork"], again["fork"])
        for one, other in zip(self.constants["bandwidths"], again["bandwidths"]):
            one.update({kind: max(one[kind], other[kind]) for kind in KINDS})

    def bandwidth(self, size):
        """Bytes a second of each kind within data of so many bytes: between those of the sizes next to it."""
        known = self.constants["bandwidths"]
        above = next((i for i, one in enumerate(known) if one["size"] >= size), len(known) - 1)
        low, high = known[max(above - 1, 0)], known[above]
        span = math.log(high["size"] / low["size"])
        share = min(max(math.log(size / low["size"]) / span, 0), 1) if span and size else 0
        return {kind: low[kind] + share * (high[kind] - low[kind]) for kind in KINDS}

    def seconds(self, phase, pace=1):
        """Arithmetic and memory run at the same time; of the bytes, as much as possible is copied. `pace` is what the
        core does of its peak.
        """
        peak = self.constants["peak_float64" if phase.double else "peak_float32"]
        level = self.bandwidth(phase.read + phase.write + phase.update)
        copied = min(phase.read, phase.write)
        moving = (
            2 * copied / level["copy"]
            + (phase.read - copied) / level["read"]
            + (phase.write - copied) / level["write"]
            + 2 * phase.update / level["update"]
        )
        slow = phase.divisions / self.constants["divisions"] + phase.roots / self.constants["roots"]
        return max(phase.flops / peak / pace, slow / pace, moving)

    def bound(self, row, peaks=()):
        """Seconds that one core needs at least; None where no bound is stated. `peaks` are those of the row's turns."""
        pace = max(peaks, default=self.constants["peak_float32"]) / self.constants["peak_float32"]
        return sum(self.seconds(phase, pace) for phase in row.bound) or None

    def is_work_bound(self, row):
        """Whether arithmetic is nearly all of it, and enough for two threads."""
        peak = self.constants["peak_float32"]
        return bool(row.bound) and sum(p.flops for p in row.bound) / peak > max(0.8 * self.bound(row), 1e-4)
