"""What Python costs in addition to the simulator, and what a second Dask worker gains.

Run `python python/benches/overhead.py [AIRLANE]` on an otherwise idle machine; AIRLANE is the
command line to compare with. Each time is the smallest of three, measured in turns, so that a busy
moment does not hit one side alone. Processor time is less disturbed by other programs than
wall-clock time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import airlane

FILE = Path(__file__).parents[2] / "scenarios/three-applications.toml"
DURATION = "300 s"
RUNS = 1000
# Enough for a cluster: with batches of 4 s, 1000 runs would be only two batches.
CLUSTER_RUNS = 3000
TURNS = 3


# A larger share of the machine's time taken by others spoils a figure, as in the other benches.
MUCH = 0.05


def ticks() -> tuple[int, int, int, int]:
    """Ticks: all, stolen, of all programs, of this program with its children (proc(5))."""
    user, nice, system, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[11:15]
    return user + nice + system + sum(rest), rest[-1], user + nice + system, sum(map(int, own))


def print_lost(what: str, before: tuple[int, int, int, int]) -> None:
    """Prints how much of the machine's time others took, and whether that is much."""
    total, stolen, programs, own = (now - then for now, then in zip(ticks(), before, strict=True))
    others = max(programs - own, 0)
    lost = (stolen + others) / max(total, 1)
    spoilt = ": SPOILT, measure again" if lost > MUCH else ""
    print(
        f"  {what}: the machine lost {lost:.1%} of its time "
        f"({stolen / max(total, 1):.1%} stolen, "
        f"{others / max(total, 1):.1%} to other programs){spoilt}"
    )


def took_s(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock time and processor time, including finished child processes."""
    before = os.times()
    start_s = time.perf_counter()
    work()
    wall_s = time.perf_counter() - start_s
    return wall_s, sum(os.times()[:4]) - sum(before[:4])


def best(*works: Callable[[], object]) -> list[tuple[float, float]]:
    """The smallest times of each, measured in turns."""
    turns = [[took_s(work) for work in works] for _ in range(TURNS)]
    return [
        (min(wall_s for wall_s, _ in times), min(cpu_s for _, cpu_s in times))
        for times in zip(*turns, strict=True)
    ]


def overhead(command: str) -> None:
    """Compares a sweep with the same runs by the command line."""
    sim = [command, "sim", "run", str(FILE), "--set", f"duration={DURATION}", "--runs", str(RUNS)]
    base = airlane.Scenario.load(FILE).with_(duration=DURATION)
    script = (
        f"import airlane; airlane.sweep(airlane.Scenario.load({str(FILE)!r})"
        f".with_(duration={DURATION!r}), runs={RUNS})"
    )
    rust, sweep, whole = best(
        lambda: subprocess.run(sim, check=True, stdout=subprocess.DEVNULL),
        lambda: airlane.sweep(base, runs=RUNS),
        lambda: subprocess.run([sys.executable, "-c", script], check=True),
    )
    print(f"{RUNS} runs: wall, processors")
    for what, (wall_s, cpu_s) in (
        ("airlane sim run", rust),
        ("airlane.sweep", sweep),
        ("as a script, with Python's start", whole),
    ):
        ratios = f"{wall_s / rust[0]:.2f} x, {cpu_s / rust[1]:.2f} x"
        print(f"  {what}: {wall_s:.2f} s, {cpu_s:.2f} s; {ratios}")


def scaling(command: str) -> None:
    """Compares two workers with one, and with what two plain processes achieve on this machine.

    If the cores are shared with others, two processes are not twice as fast as one, and no cluster
    on this machine can be.
    """
    from distributed import Client, LocalCluster

    base = airlane.Scenario.load(FILE).with_(duration=DURATION)
    half = [command, "sim", "run", str(FILE), "--set", f"duration={DURATION}", "--threads", "1"]
    half += ["--runs", str(RUNS // 2)]

    def on_dask(workers: int) -> float:
        # One cluster at a time, because the work of an idle one would count, too.
        with (
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            airlane.sweep(base, runs=2 * workers, executor=client)
            return took_s(lambda: airlane.sweep(base, runs=CLUSTER_RUNS, executor=client))[0]

    def processes(count: int) -> None:
        started = [subprocess.Popen(half, stdout=subprocess.DEVNULL) for _ in range(count)]
        codes = [process.wait() for process in started]
        if any(codes):
            raise SystemExit(f"{command} failed")

    turns = [
        (
            on_dask(1),
            on_dask(2),
            took_s(lambda: processes(1))[0],
            took_s(lambda: processes(2))[0],
        )
        for _ in range(TURNS)
    ]
    one_s, two_s, alone_s, both_s = (min(times) for times in zip(*turns, strict=True))
    print(f"{CLUSTER_RUNS} runs on Dask: {one_s:.2f} s on 1 worker, {two_s:.2f} s on 2 workers")
    print(f"  {one_s / two_s:.2f} times as fast")
    print(f"  two programs side by side: {2 * alone_s / both_s:.2f} times as fast as one")


if __name__ == "__main__":
    program = sys.argv[1] if len(sys.argv) > 1 else "airlane"
    for part in (overhead, scaling):
        before = ticks()
        part(program)
        print_lost(part.__name__, before)
