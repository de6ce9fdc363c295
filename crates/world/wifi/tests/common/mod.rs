//! Bianchi's closed form, to which saturated stations are compared, here and from scenario files.

use airlane_base::Duration;
use airlane_wifi::profile::Profile;

/// A UDP packet of 1000 B plus the header of the routing agent.
pub(crate) const LEN: usize = 1020;
const BITS: f64 = 8_000.0;

/// Bianchi 2000, equations 7 to 13, with collisions as long as successes: Mbit/s, and the probability that a
/// frame collides.
pub(crate) fn bianchi(profile: &Profile, n: usize) -> (f64, f64) {
    let w = f64::from(profile.cw_first);
    let stages = libm::round(libm::log2(f64::from(profile.cw_max) / w));
    let tau = |p: f64| {
        let wide = 1.0 - libm::pow(2.0 * p, stages);
        2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * wide)
    };
    let collides = |tau: f64| 1.0 - libm::pow(1.0 - tau, n as f64 - 1.0);
    let (mut low, mut high) = (0.0, 0.999);
    for _ in 0..100 {
        let p = (low + high) / 2.0 + 1e-12;
        if collides(tau(p)) > p {
            low = p;
        } else {
            high = p;
        }
    }
    let p = (low + high) / 2.0;
    let tau = tau(p);
    let silent = libm::pow(1.0 - tau, n as f64);
    let success = n as f64 * tau * libm::pow(1.0 - tau, n as f64 - 1.0);
    let us = |d: Duration| d.as_nanos() as f64 / 1e3;
    let exchange = us(profile.difs() + profile.frame(LEN) + profile.data_nav());
    let round = silent * us(profile.slot) + (1.0 - silent) * exchange;
    (success * BITS / round, p)
}
