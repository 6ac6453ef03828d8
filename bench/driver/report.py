"""What the results say, as text and Markdown. Times stay in the JSON, as they were measured."""

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path

from machine import KINDS

HEADING = f"{'row':62} {'asked':>6} {'ratio':>7} {'minima':>7} {'bound':>6}  met  peers (ratio)"
YES = {True: "yes", False: "no", None: ""}

INTRODUCTION = """\
A ratio is the peer's time over Taper's, of samples taken in turn; it holds against the fastest peer. The share is the
least time that arithmetic and memory of one core allow over Taper's shortest; arithmetic at the core's peak in the turns
of the row, as clocks change. A row is met at its ratio; where that would pass the bound, at 70 % of the bound (85 % for
products and convolutions from 128^3 multiplications on) while still ahead of the peer. Outputs are compared before
anything is timed. With `--clock cpu` the seconds are those of the processor, and with `chrt -f 1` nothing else runs
meanwhile: both are for a machine that other programs use too."""


def number(x):
    return "" if x is None else f"{x:.3g}" if x < 100 else f"{x:.0f}"


def percent(x):
    return "" if x is None else f"{100 * x:.0f} %"


def asked(row):
    return percent(row["asked_share"]) if row["asked_share"] else number(row["asked_ratio"])


def every_peer(row):
    return ", ".join(f"{name} {number(ratio)}" for name, ratio in row["ratios"].items())


def row_text(row):
    line = (
        f"{row['row']:62} {asked(row):>6} {number(row['ratio']):>7} {number(row['ratio_of_minima']):>7} "
        f"{percent(row['share_of_bound']):>6}  {YES[row['met']]:3}  {every_peer(row)}"
    )
    return "\n".join([line, *(f"    {remark}" for remark in row["remarks"])])


def factor_text(entry):
    return f"{entry['row']:72} {number(entry['asked']):>6} {number(entry['factor']):>7}  {YES[entry['met']]}"


# --- Markdown ---------------------------------------------------------------------------------------------------------


def table(heads, lines):
    return [
        "",
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(map(str, line))} |" for line in lines),
    ]


def counted(entries):
    judged = [entry for entry in entries if entry["met"] is not None]
    return f"{sum(entry['met'] for entry in judged)} of {len(judged)} are met."


def size_text(size):
    return f"{size >> 20} MB" if size >> 20 else f"{size >> 10} KB"


def machine_section(machine):
    out = [
        "## Machine",
        "",
        f"{machine['processor']}, {machine['processors']} processors; one core, measured by `bench/machine.cpp`.",
        "",
        f"- float32: {machine['peak_float32'] / 1e9:.0f} GFLOP/s, float64: {machine['peak_float64'] / 1e9:.0f} GFLOP/s",
        f"- float32 divisions: {machine['divisions'] / 1e9:.1f} G/s, square roots: {machine['roots'] / 1e9:.1f} G/s",
        f"- an empty OpenMP region of two threads: {machine['fork'] * 1e6:.1f} us",
    ]
    return out + table(
        ["GB/s within", "read", "write", "copy (both counted)", "in place (both counted)"],
        [
            [size_text(one["size"]), *(f"{one[kind] / 1e9:.0f}" for kind in KINDS)]
            for one in machine["bandwidths"]
        ],
    )


def rows_section(rows):
    out = ["## Rows", "", f"{counted(rows)} Float32 where nothing else is said."]
    for group in dict.fromkeys(row["group"] for row in rows):
        out += ["", f"### {group}"]
        out += table(
            ["row", "asked", "ratio", "of minima", "share of the bound", "met", "every peer"],
            [
                [
                    row["row"],
                    asked(row),
                    number(row["ratio"]),
                    number(row["ratio_of_minima"]),
                    percent(row["share_of_bound"]),
                    YES[row["met"]],
                    every_peer(row),
                ]
                for row in rows
                if row["group"] == group
            ],
        )
    remarks = [f"- {row['row']}: {remark}" for row in rows for remark in row["remarks"]]
    return out + (["", "Left out:", "", *remarks] if remarks else [])


def factor_section(title, words):
    def section(entries):
        return [
            f"## {title}",
            "",
            f"{words} {counted(entries)}",
            *table(
                ["row", "asked", "factor", "met"],
                [[e["row"], number(e["asked"]), number(e["factor"]), YES[e["met"]]] for e in entries],
            ),
        ]

    return section


def growth_section(curves):
    return [
        "## Growth",
        "",
        "How the time grows when one extent doubles: the worst step of each curve, and all. Where data leaves a cache, as "
        f"much more is allowed as the least time that memory allows grows by. {counted(curves)}",
        *table(
            ["curve", "sizes", "at most", "worst", "at", "met", "every doubling"],
            [
                [
                    c["row"],
                    f"{c['sizes'][0]} to {c['sizes'][-1]}",
                    number(c["asked"]),
                    number(c["factor"]),
                    c["at"],
                    YES[c["met"]],
                    " ".join(f"{f:.2f}" for f in c["factors"]),
                ]
                for c in curves
            ],
        ),
    ]


def footprint_section(entries):
    return [
        "## Size and start",
        "",
        "A limit in seconds was set on another machine; where it is missed, the ratio to the newest PyTorch's time that it"
        f" was there meets it. {counted(entries)}",
        *table(
            ["what", "limit", "used", "ratio asked", "newest PyTorch, times Taper's", "met"],
            [
                [
                    e["row"],
                    f"{e['limit']} {e['unit']}",
                    percent(e["value"] / e["limit"]),
                    number(e.get("asked")),
                    number(e["peer"] / e["value"] if e["peer"] else None),
                    YES[e["met"]],
                ]
                for e in entries
            ],
        ),
    ]


SECTIONS = {
    "rows": rows_section,
    "threads": factor_section(
        "Two threads",
        "Time of one thread over time of two. 1.8 is asked where arithmetic is nearly all of the "
        "work; elsewhere two must not be slower.",
    ),
    "growth": growth_section,
    "denormals": factor_section("Denormals", "Time of a step flooded with denormals over that of a usual one."),
    "footprint": footprint_section,
}


def markdown(data):
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    missing = f" Not found: {', '.join(data['missing'])}." if data["missing"] else ""
    out = ["# Results", "", *INTRODUCTION.splitlines(), ""]
    out += [f"- `{run['command']}`, {run['date']}, commit {run['commit']}" for run in data["runs"]]
    out += [
        "",
        f"{data['compiler']}.",
        f"Compared: {versions}.{missing}" if versions else "",
        "",
        *machine_section(data["machine"]),
    ]
    for part, section in SECTIONS.items():
        if data[part]:
            out += ["", *section(data[part])]
    return "\n".join(out) + "\n"


# --- where it was measured --------------------------------------------------------------------------------------------


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


def new_data(machine, command):
    """What is filled with the results of one run."""
    commit = first_line("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return {
        "runs": [{"command": command, "date": str(datetime.date.today()), "commit": commit}],
        "compiler": first_line(os.environ.get("CXX", "c++"), "--version"),
        "versions": {},
        "missing": [],
        "machine": {**machine.constants, "processor": processor(), "processors": os.cpu_count()},
        **{part: [] for part in SECTIONS},
    }


def write(data, markdown_file, raw_file, add):
    """With `add`, what this run did not measure stays as the file has it; the same command replaces its run before."""
    if add and raw_file.exists():
        before = json.loads(raw_file.read_text())
        again = {run["command"] for run in data["runs"]}
        data["runs"] = [run for run in before["runs"] if run["command"] not in again] + data["runs"]
        if not data["rows"]:
            data["machine"] = before["machine"]
        for key in ("versions", "missing", *SECTIONS):
            data[key] = data[key] or before[key]
    raw_file.write_text(json.dumps(data, indent=1))
    markdown_file.write_text(markdown(data))
