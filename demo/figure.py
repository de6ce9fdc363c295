"""Ten lines to a figure for a paper: the call of `make demo` under more and more loss."""

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
figure.savefig("target/demo/voice-loss.pdf")
figure.savefig("target/demo/voice-loss.png", dpi=300)
print(
    "Its loss under more loss of the link is drawn in target/demo/voice-loss.pdf (demo/figure.py)."
)
