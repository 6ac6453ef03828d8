"""What the machine can do at most, and how long a row's work must take at least."""

import json
import subprocess


class Machine:
    def __init__(self, program):
        self.constants = json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)

    def level(self, size):
        """The nearest level of memory that holds so many bytes."""
        levels = self.constants["levels"]
        return next((level for level in levels if level["size"] >= size), levels[-1])

    def seconds(self, phase):
        """Arithmetic and memory run at the same time; of the bytes, as much as possible is copied."""
        peak = self.constants["peak_float64" if phase.double else "peak_float32"]
        level = self.level(phase.read + phase.write)
        copied = min(phase.read, phase.write)
        moving = 2 * copied / level["copy"] + (phase.read - copied) / level["read"] + (phase.write - copied) / level["write"]
        slow = phase.divisions / self.constants["divisions"] + phase.roots / self.constants["roots"]
        return max(phase.flops / peak, slow, moving)

    def bound(self, row):
        """Seconds that one core needs at least; None where no bound is stated."""
        return sum(map(self.seconds, row.bound)) or None

    def is_work_bound(self, row):
        """Whether arithmetic is nearly all of it, and enough for two threads."""
        peak = self.constants["peak_float32"]
        return bool(row.bound) and sum(p.flops for p in row.bound) / peak > max(0.8 * self.bound(row), 1e-4)
