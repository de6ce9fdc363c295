"""A small world with losses, repairs and TCP for the tests of events, custom pieces and plots."""

from pathlib import Path

TEXT = """
schema = 1
name = "a lossy link"
duration = "40 s"
drain = "1 s"
nodes = { server = {}, base = {}, mobile = {} }

[links.wired]
ends = ["server", "base"]
rate = "10 Mbit/s"
delay = "1 ms"

[links.radio]
ends = ["base", "mobile"]
rate = "64 kbit/s"
delay = "50 ms"
frame = "250 B"
errors = { kind = "uniform", rate = RATE }
SERVICES

[[flows]]
name = "file"
ends = ["server", "mobile"]
transport = { kind = "tcp", profile = "ns2-1999", variant = "reno" }
app = { kind = "bulk", size = "60 kB" }

[[flows]]
name = "voice"
ends = ["server", "mobile"]
transport = { kind = "udp" }
dscp = "EF"
app = { kind = "conferencing", rate = "8 kbit/s", packet = "250 B", talk = "1 s", silence = "1 s" }
"""

SERVICES = """
header = "study"
services = [
  { number = 1, name = "tcp", rate = 0.7, scheme = { kind = "sr-m2" } },
  { number = 2, name = "voice", rate = 0.3, scheme = { kind = "rlp-oos", retries = 1 } },
]
classes = [
  { match = { dscp = "EF" }, service = "voice" },
  { match = { protocol = "tcp" }, service = "tcp" },
]
"""


def world(folder: Path, *, rate: float = 0.05, services: bool = True) -> Path:
    """Writes the world and returns its file."""
    text = TEXT.replace("RATE", str(rate)).replace("SERVICES", SERVICES if services else "")
    path = folder / f"lossy-{rate}-{services}.toml"
    path.write_text(text, encoding="utf-8")
    return path
