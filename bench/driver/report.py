"""What the results say, as text, Markdown and JSON. Times appear in the JSON only, as they were measured."""

import datetime
import json
import os
import platform
import statistics
import subprocess
from pathlib import Path

HEADING = f"{'row':62} {'asked':>6} {'ratio':>7} {'minima':>7} {'bound':>6}  met  peers (ratio)"

SPEED_UP = 1.8  # of two threads, where arithmetic is nearly all of the work
NEVER_SLOWER = 0.95  # of two threads elsewhere; 1 but for the spread of the samples
FLOODED = 1.10  # the time of a step may grow to this by denormals
STATISTICS = {"median": "medians", "minimum": "minima"}
CLOCKS = {"wall": "", "cpu": " (seconds of the processor, not of the wall, for others used the machine too)"}
YES = {True: "yes", False: "no", None: ""}


def value(samples, by):
    return min(samples) if by == "minimum" else statistics.median(samples)


def number(x):
    return "" if x is None else f"{x:.3g}" if x < 100 else f"{x:.0f}"


def percent(x):
    return "" if x is None else f"{100 * x:.0f} %"


class Line:
    """A row's result, judged.

    A ratio holds against the fastest peer. Where it would pass the physical bound, the row is met at 70 % of the bound,
    85 % for products and convolutions from 128^3 multiplications on, while still ahead of that peer.
    """

    def __init__(self, result, machine, given):
        self.row, self.times, self.remarks = result.row, result.times, result.remarks
        clock = given.clock
        self.ratio = self.minima = self.share = self.met = self.fastest = None
        self.asked = f"{percent(self.row.share)}" if self.row.share else number(self.row.ratio)
        self.ratios = {}
        if "taper" not in self.times:
            self.met = False
            return
        seconds = {name: value(times.of(clock), given.by) for name, times in self.times.items()}
        shortest = {name: min(times.of(clock)) for name, times in self.times.items()}
        ours = seconds.pop("taper")
        bound = machine.bound(self.row)
        # Several threads share the bound of as many cores where arithmetic limits.
        self.share = bound / shortest["taper"] / given.threads if bound else None
        self.ratios = {name: theirs / ours for name, theirs in sorted(seconds.items(), key=lambda item: item[1])}
        if self.ratios:
            self.fastest = next(iter(self.ratios))
            self.ratio = self.ratios[self.fastest]
            self.minima = shortest[self.fastest] / shortest["taper"]
        if self.row.share:
            self.met = self.share >= self.row.share
        elif self.ratio is not None and self.row.ratio:
            self.met = self.ratio >= self.row.ratio
            if not self.met and bound and seconds[self.fastest] / self.row.ratio < bound:
                large = sum(phase.flops for phase in self.row.bound) >= 2 * 128**3
                arithmetic = large and machine.is_work_bound(self.row)
                self.met = self.ratio >= 1 and self.share >= (0.85 if arithmetic else 0.70)

    def text(self):
        others = ", ".join(f"{name} {number(ratio)}" for name, ratio in self.ratios.items())
        line = (f"{self.row.name:62} {self.asked:>6} {number(self.ratio):>7} {number(self.minima):>7} "
                f"{percent(self.share):>6}  {YES[self.met]:3}  {others}")
        return "\n".join([line, *(f"    {remark}" for remark in self.remarks)])

    def markdown(self):
        others = ", ".join(f"{name} {number(ratio)}" for name, ratio in self.ratios.items())
        return (f"| {self.row.name} | {self.asked} | {number(self.ratio)} | {number(self.minima)} | {percent(self.share)} "
                f"| {YES[self.met]} | {others} |")

    def json(self):
        return {"row": self.row.name, "group": self.row.group, "task": self.row.task, "asked_ratio": self.row.ratio, "asked_share": self.row.share,
                "ratio": self.ratio, "ratio_of_minima": self.minima, "share_of_bound": self.share, "met": self.met,
                "ratios": self.ratios, "remarks": self.remarks, "tolerance": self.row.tolerance,
                "differences": {name: times.difference for name, times in self.times.items() if name != "taper"},
                "samples": {name: {"wall": times.wall, "cpu": times.cpu} for name, times in self.times.items()}}


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


class Results:
    def __init__(self, given, machine, command):
        self.given, self.machine, self.load = given, machine, os.getloadavg()[0]
        self.command = " ".join(["bench/run", *command])
        self.versions, self.results, self.speed_ups, self.growths = {}, [], [], []
        self.floods, self.footprint = [], []

    def add(self, result):
        self.results.append(result)
        return Line(result, self.machine, self.given).text()

    def add_speed_up(self, row, factor):
        asked = SPEED_UP if self.machine.is_work_bound(row) else NEVER_SLOWER
        self.speed_ups.append({"row": row.name, "asked": asked, "speed_up": factor, "met": factor >= asked})
        return f"{row.name:62} {number(asked):>6} {number(factor):>7}  {YES[factor >= asked]}"

    def add_growth(self, growth, factors):
        worst = max(range(len(factors)), key=factors.__getitem__)
        met = factors[worst] <= growth.cliff
        self.growths.append({"curve": growth.name, "sizes": growth.sizes, "factors": factors, "worst": factors[worst],
                             "at": growth.sizes[worst + 1], "allowed": growth.cliff, "met": met})
        return (f"{growth.name:62} {number(growth.cliff):>6} {number(factors[worst]):>7}  {YES[met]}  "
                + " ".join(f"{f:.2f}" for f in factors))

    def add_flood(self, flood, factor):
        met = factor <= FLOODED
        self.floods.append({"step": flood.name, "factor": factor, "met": met})
        return f"{flood.name:62} {number(FLOODED):>6} {number(factor):>7}  {YES[met]}"

    # --- Markdown ------------------------------------------------------------------------------------------------------

    def machine_section(self):
        constants = self.machine.constants
        out = ["## Machine", "", f"{processor()}; one core, measured by `bench/machine.cpp` in this run. {os.cpu_count()} processors; "
               f"{self.load:.1f} other programs were running at the start.", "",
               f"- float32: {constants['peak_float32'] / 1e9:.0f} GFLOP/s, float64: {constants['peak_float64'] / 1e9:.0f} GFLOP/s",
               f"- float32 divisions: {constants['divisions'] / 1e9:.1f}, square roots: {constants['roots'] / 1e9:.1f} thousand million "
               "a second",
               f"- an empty OpenMP region of two threads: {constants['fork'] * 1e6:.1f} us", "",
               "| GB/s | read | write | copy (both counted) |", "|---|---|---|---|"]
        out += [f"| {level['name']} | {level['read'] / 1e9:.0f} | {level['write'] / 1e9:.0f} | {level['copy'] / 1e9:.0f} |"
                for level in constants["levels"]]
        return out

    def rows_section(self):
        counted = [line for line in self.lines if line.met is not None]
        out = ["## Rows", "", f"{sum(line.met for line in counted)} of {len(counted)} are met. Float32, "
               f"{self.given.threads} thread{'s' if self.given.threads > 1 else ''}."]
        for group in dict.fromkeys(line.row.group for line in self.lines):
            out += ["", f"### {group}", "", "| row | asked | ratio | of minima | share of the bound | met | every peer |",
                    "|---|---|---|---|---|---|---|", *(line.markdown() for line in self.lines if line.row.group == group)]
        remarks = [f"- {line.row.name}: {remark}" for line in self.lines for remark in line.remarks]
        return out + (["", "Left out:", "", *remarks] if remarks else [])

    def thread_section(self):
        out = ["## Two threads", "", f"Time of one thread over time of two; {SPEED_UP} is asked where arithmetic is nearly all "
               "of the work, elsewhere two threads must not be slower.", "", "| row | asked | factor | met |",
               "|---|---|---|---|"]
        return out + [f"| {s['row']} | {s['asked']} | {number(s['speed_up'])} | {YES[s['met']]} |"
                      for s in self.speed_ups]

    def growth_section(self):
        out = ["## Growth", "", "How the time grows when one extent doubles; the worst step of each curve, and all of them.", "",
               "| curve | sizes | allowed | worst | at | met | every doubling |", "|---|---|---|---|---|---|---|"]
        return out + [f"| {g['curve']} | {g['sizes'][0]} to {g['sizes'][-1]} | {g['allowed']} | {number(g['worst'])} | {g['at']} "
                      f"| {YES[g['met']]} | {' '.join(f'{f:.2f}' for f in g['factors'])} |" for g in self.growths]

    def flood_section(self):
        out = ["## Denormals", "", f"Time of a step flooded with denormals over that of a usual one; at most {FLOODED} is asked.", "",
               "| step | factor | met |", "|---|---|---|"]
        return out + [f"| {f['step']} | {f['factor']:.2f} | {YES[f['met']]} |" for f in self.floods]

    def footprint_section(self):
        out = ["## Size and start", "", "| what | limit | used | met | newest PyTorch, times Taper's |", "|---|---|---|---|---|"]
        return out + [f"| {f['what']} | {f['limit']} {f['unit']} | {percent(f['value'] / f['limit'])} "
                      f"| {YES[f['value'] <= f['limit']]} | {number(f['peer'] / f['value'] if f['peer'] else None)} |"
                      for f in self.footprint]

    def markdown(self):
        commit = first_line("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        out = ["# Results", "", f"`{self.command}`, {datetime.date.today()}, commit {commit}, {first_line('c++', '--version')}.", "",
               f"Compared: {versions}." if versions else "", "",
               f"A ratio is the peer's time over Taper's, {STATISTICS[self.given.by]} of samples taken in turn{CLOCKS[self.given.clock]}; it holds against the fastest "
               "peer. The share is the least time that arithmetic and memory of one core allow over Taper's shortest. A row is met "
               "at its ratio; where that would pass the bound, at 70 % of the bound (85 % for products and convolutions) while "
               "still ahead of the peer. Outputs are compared before anything is timed.", ""]
        parts = [(self.machine_section, True), (self.rows_section, self.lines), (self.thread_section, self.speed_ups),
                 (self.growth_section, self.growths), (self.flood_section, self.floods),
                 (self.footprint_section, self.footprint)]
        for section, wanted in parts:
            if wanted:
                out += [*section(), ""]
        return "\n".join(out)

    def write(self, markdown, raw):
        self.machine.measure_again()
        self.lines = [Line(result, self.machine, self.given) for result in self.results]
        markdown.write_text(self.markdown())
        raw.write_text(json.dumps(
            {"command": self.command, "versions": self.versions, "machine": self.machine.constants,
             "rows": [line.json() for line in self.lines], "threads": self.speed_ups, "growth": self.growths,
             "denormals": self.floods, "footprint": self.footprint}, indent=1))
