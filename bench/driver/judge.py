"""Whether what was measured is what is asked for, as plain values for the report."""

import math
import statistics

SPEED_UP = 1.8  # of two threads, where arithmetic is nearly all of the work
NEVER_SLOWER = 0.95  # of two threads elsewhere; 1 but for the spread of the samples
FLOODED = 1.10  # the time of a step may grow to this by denormals


def value(samples, by):
    return min(samples) if by == "minimum" else statistics.median(samples)


def row(result, machine, given):
    """A ratio holds against the fastest peer. Where it would pass the physical bound, the row is met at 70 % of the
    bound, 85 % for products and convolutions from 128^3 multiplications on, while still ahead of that peer.
    """
    asked, times = result.row, result.times
    out = {
        "row": asked.name,
        "group": asked.group,
        "task": asked.task,
        "asked_ratio": asked.ratio,
        "asked_share": asked.share,
        "ratio": None,
        "ratio_of_minima": None,
        "share_of_bound": None,
        "met": None,
        "ratios": {},
        "remarks": result.remarks,
        "tolerance": asked.tolerance,
        "differences": {name: t.difference for name, t in times.items() if name != "taper"},
        "peaks": result.peaks,
        "samples": {name: {"wall": t.wall, "cpu": t.cpu} for name, t in times.items()},
    }
    if "taper" not in times:
        return {**out, "met": False}
    seconds = {name: value(t.of(given.clock), given.by) for name, t in times.items()}
    shortest = {name: min(t.of(given.clock)) for name, t in times.items()}
    ours = seconds.pop("taper")
    bound = machine.bound(asked, result.peaks)
    if bound:
        out["share_of_bound"] = bound / shortest["taper"] / given.threads
    out["ratios"] = {name: theirs / ours for name, theirs in sorted(seconds.items(), key=lambda item: item[1])}
    if out["ratios"]:
        fastest, out["ratio"] = next(iter(out["ratios"].items()))
        out["ratio_of_minima"] = shortest[fastest] / shortest["taper"]
    if asked.share:
        out["met"] = out["share_of_bound"] >= asked.share
    elif out["ratios"] and asked.ratio:
        out["met"] = out["ratio"] >= asked.ratio
        # The bound is of a quiet machine, as the shortest times are.
        if not out["met"] and bound and shortest[fastest] / asked.ratio < bound:
            large = sum(phase.flops for phase in asked.bound) >= 2 * 128**3
            share = 0.85 if large and machine.is_work_bound(asked) else 0.70
            out["met"] = out["ratio"] >= 1 and out["share_of_bound"] >= share
    return out


def speed_up(asked_of, factor, machine):
    asked = SPEED_UP if machine.is_work_bound(asked_of) else NEVER_SLOWER
    return {"row": asked_of.name, "asked": asked, "factor": factor, "met": factor >= asked}


def growth(curve, factors, machine):
    allowed = [curve.cliff] * len(factors)
    if curve.bound:
        bounds = [sum(map(machine.seconds, curve.bound(n))) for n in curve.sizes]
        natural = 2 ** math.floor(math.log2(curve.cliff))
        allowed = [curve.cliff * max(1, after / before / natural) for before, after in zip(bounds, bounds[1:])]
    worst = max(range(len(factors)), key=lambda i: factors[i] / allowed[i])
    return {
        "row": curve.name,
        "sizes": curve.sizes,
        "factors": factors,
        "factor": factors[worst],
        "at": curve.sizes[worst + 1],
        "asked": allowed[worst],
        "met": factors[worst] <= allowed[worst],
    }


def flood(step, factor):
    return {"row": step.name, "asked": FLOODED, "factor": factor, "met": factor <= FLOODED}
