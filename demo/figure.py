"""Ten lines to a figure for a paper: the call of `make demo` under more and more loss."""

from pathlib import Path

import airlane

base = airlane.Scenario.load("scenarios/three-applications.toml").with_(duration="300 s")
repair = "links.radio.services[voice].scheme"
schemes = {
    "no repair": {repair: {"kind": "default"}},
    "repeated once": {repair: {"kind": "rlp-oos", "retries": 1}},
    "repeated twice": {repair: {"kind": "rlp-oos", "retries": 2}},
}
loss = {"links.radio.errors.rate": [0.01, 0.02, 0.05, 0.1], "voice": schemes}
frame = airlane.sweep(base, vary=loss, runs=10, metrics=["voice.loss_ratio"])
figure = airlane.plots.means(frame, "voice.loss_ratio", x="links.radio.errors.rate", by="voice")
out = Path("target/demo")
out.mkdir(parents=True, exist_ok=True)
figure.savefig(out / "voice-loss.pdf")
figure.savefig(out / "voice-loss.png", dpi=300)
print(f"Its loss under more loss of the link is drawn in {out}/voice-loss.pdf (demo/figure.py).")
