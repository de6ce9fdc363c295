"""Plots of what happens in runs, as wide as a column and readable without colours.

Each returns a Matplotlib figure: `figure.savefig("window.pdf")` writes it as vectors. Matplotlib is
imported when the first plot is made.
"""

from airlane.plots.distribution import cost_against_loss, cost_of, delay_cdf
from airlane.plots.ladder import ladder
from airlane.plots.means import means
from airlane.plots.over_time import delay, jitter_of, throughput
from airlane.plots.tcp import congestion_window, sequence

__all__ = [
    "congestion_window",
    "cost_against_loss",
    "cost_of",
    "delay",
    "delay_cdf",
    "jitter_of",
    "ladder",
    "means",
    "sequence",
    "throughput",
]
