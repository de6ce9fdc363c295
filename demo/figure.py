"""Ten lines to a figure for a paper: the call of `make demo` as loss increases."""

from pathlib import Path

import airlane

base = airlane.Scenario.load("scenarios/three-applications.toml").with_(duration="300 s")
voice = "links.radio.services[voice].scheme"
schemes = {f"repeated up to {n} times": {voice + ".retries": n} for n in (1, 2)}
schemes = {"no repair": {voice: {"kind": "default"}}, **schemes}
vary = {"links.radio.errors.rate": [0.01, 0.02, 0.05, 0.1], "voice": schemes}
frame = airlane.sweep(base, vary=vary, runs=10, metrics="voice.loss_ratio")
look = {"x_label": "Frames lost by the link, as a share", "y_label": "Packets of the call lost"}
figure = airlane.plots.means(
    frame, "voice.loss_ratio", x="links.radio.errors.rate", by="voice", **look
)
Path("target/demo").mkdir(parents=True, exist_ok=True)
figure.savefig("target/demo/voice-loss.pdf")
figure.savefig("target/demo/voice-loss.png", dpi=300)
print("Its loss under more loss of the link is drawn in target/demo/voice-loss.pdf.")
