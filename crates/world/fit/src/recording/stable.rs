//! Tests whether loss changes during a recording, and whether it depends on the load.

use super::frames::Frame;
use super::note::Note;

/// Length of a window in which losses are counted, s.
const WINDOW: f64 = 0.1;
/// Minimum number of windows on each side.
const LEAST_WINDOWS: usize = 30;
/// Minimum difference of two parts in standard errors, and minimum factor.
const ERRORS: f64 = 4.0;
const TIMES: f64 = 1.5;
/// Minimum factor between the loads of the two halves.
const BUSIER: f64 = 1.5;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    frames: f64,
    lost: f64,
    bytes: f64,
}

fn windows(frames: &[Frame]) -> Vec<Window> {
    let begins = frames.first().map_or(0.0, |frame| frame.at);
    let mut windows: Vec<Window> = vec![];
    for frame in frames {
        let at = ((frame.at - begins) / WINDOW) as usize;
        if windows.len() <= at {
            windows.resize(at + 1, Window::default());
        }
        let window = &mut windows[at];
        window.frames += 1.0;
        window.bytes += frame.bytes;
        window.lost += f64::from(u8::from(frame.lost));
    }
    windows.retain(|window| window.frames > 0.0);
    windows
}

/// Mean loss, and its variance from the scatter of the windows, which accounts for bursts.
fn loss(windows: &[Window]) -> (f64, f64) {
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let frames = sum(|w| w.frames).max(1.0);
    let mean = sum(|w| w.lost) / frames;
    let squares = windows.iter().map(|w| {
        let beyond = w.lost - mean * w.frames;
        beyond * beyond
    });
    // Neighbouring windows are correlated where bursts are long.
    let rows: f64 = windows
        .windows(2)
        .map(|pair| {
            let beyond = |w: &Window| w.lost - mean * w.frames;
            beyond(&pair[0]) * beyond(&pair[1])
        })
        .sum::<f64>()
        .max(0.0);
    let variance = (squares.sum::<f64>() + 2.0 * rows) / (frames * frames);
    (mean, variance.max(mean * (1.0 - mean) / frames))
}

fn differ(a: &[Window], b: &[Window]) -> Option<[f64; 2]> {
    if a.len().min(b.len()) < LEAST_WINDOWS {
        return None;
    }
    let ((a, va), (b, vb)) = (loss(a), loss(b));
    let error = libm::sqrt(va + vb);
    let (low, high) = (a.min(b), a.max(b));
    (high - low > ERRORS * error && high > TIMES * low).then_some([a, b])
}

/// Whether loss differs between the halves of the recording.
pub(super) fn changed(frames: &[Frame]) -> Option<Note> {
    let windows = windows(frames);
    let (first, second) = windows.split_at(windows.len() / 2);
    differ(first, second).map(|[first, second]| Note::Changed { first, second })
}

/// Whether loss grows with the load.
pub(super) fn grows_with_load(frames: &[Frame]) -> Option<Note> {
    let mut windows = windows(frames);
    windows.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let third = windows.len() / 3;
    let (light, heavy) = (&windows[..third], &windows[windows.len() - third..]);
    let sent = |windows: &[Window]| windows.iter().map(|w| w.bytes).sum::<f64>();
    if sent(heavy) < BUSIER * sent(light) {
        return None;
    }
    let [light, heavy] = differ(light, heavy)?;
    (heavy > light).then_some(Note::GrowsWithLoad { light, heavy })
}
