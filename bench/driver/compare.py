"""Runs rows: outputs first, then samples in turn."""

import statistics
import time
from dataclasses import dataclass, field

from peer import SAMPLE, Refused, difference


@dataclass
class Times:
    """Samples of one peer on one row, in seconds a repetition."""

    difference: float = 0.0
    wall: list = field(default_factory=list)
    cpu: list = field(default_factory=list)

    def of(self, clock):
        return getattr(self, clock)


@dataclass
class Result:
    row: object
    times: dict = field(default_factory=dict)  # of the peers that took part, Taper's first
    remarks: list = field(default_factory=list)
    peaks: list = field(default_factory=list)  # float32 operations a second of the core, in each turn


def samples_in_turn(peers, rounds, budget, end_turn=lambda: None):
    """A B A B ...; each list of samples is of one peer. Ends early when the seconds are spent, not before 3 rounds.

    After 2 rounds, peers that take 5 times as long as the fastest beside Taper are left alone: they decide nothing.
    `end_turn` is called after each round.
    """
    repetitions = [peer.repetitions_for(SAMPLE) for peer in peers]
    times = [Times() for _ in peers]
    end = time.monotonic() + budget
    for turn in range(rounds):
        if turn >= 3 and time.monotonic() > end:
            break
        fastest = min((min(taken.wall) for taken in times[1:]), default=0) if turn >= 2 else float("inf")
        for peer, count, taken in zip(peers, repetitions, times):
            if peer is not peers[0] and turn >= 2 and min(taken.wall) > 5 * fastest:
                continue
            if peer.threads > 1:
                time.sleep(2e-3)  # until the threads of the one before stopped spinning
            wall, cpu = peer.sample(count)
            taken.wall.append(wall)
            taken.cpu.append(cpu)
        end_turn()
    return times


def outputs(peer, row, remarks):
    """What the peer computes; None if it does not offer the task, or fails at it."""
    try:
        return peer.values() if peer.prepare(row.task) else None
    except Refused as e:
        remarks.append(f"{peer.name}: {e}")
        return None


def compare(row, peers, peak, rounds, budget):
    """Times Taper, `peers[0]`, and the others that compute the same, and in each turn the peak of the core."""
    result = Result(row)
    taking_part, differences = [], []
    for peer in peers:
        if row.peers and peer is not peers[0] and peer.name not in row.peers:
            continue
        values = outputs(peer, row, result.remarks)
        if peer is peers[0]:
            ours = values
        if ours is None:
            break
        if values is None:
            continue
        apart = difference(values, ours)
        if apart > row.tolerance:
            result.remarks.append(
                f"{peer.name} differs by {apart:.1e} of the largest value, more than {row.tolerance:.0e}"
            )
            continue
        taking_part.append(peer)
        differences.append(apart)
    samples = samples_in_turn(taking_part, rounds, budget, lambda: result.peaks.append(peak.sample()))
    for peer, apart, times in zip(taking_part, differences, samples):
        times.difference = apart
        result.times[peer.name] = times
    return result


def ratio_of_tasks(peers, tasks, rounds, budget, clock="wall"):
    """Shortest time of each task relative to that of the first, each done by its own process."""
    for peer, task in zip(peers, tasks):
        peer.prepare(task)
    shortest = [min(times.of(clock)) for times in samples_in_turn(peers, rounds, budget)]
    return [seconds / shortest[0] for seconds in shortest]


def speed_up(one, two, row, rounds, budget):
    """How much faster two threads are than one."""
    ratio = ratio_of_tasks([one, two], [row.task] * 2, rounds, budget)[1]
    return 1 / ratio


def growth_factors(peer, growth, rounds, clock):
    """Time at each size over that at half the size."""
    seconds = []
    for n in growth.sizes:
        peer.prepare(growth.task.format(n=n))
        repetitions = peer.repetitions_for(SAMPLE / 2)
        seconds.append(min(peer.sample(repetitions)[clock == "cpu"] for _ in range(rounds)))
    return [after / before for before, after in zip(seconds, seconds[1:])]
