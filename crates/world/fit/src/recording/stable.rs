//! Whether losses are of one link from the beginning to the end, and whether they depend on what is sent.

use super::frames::Frame;
use super::note::Note;

/// Losses are counted in windows of this length, s.
const WINDOW: f64 = 0.1;
/// So many are needed on each side.
const LEAST_WINDOWS: usize = 30;
/// By so many standard errors two parts differ that are not of one kind, and by such a factor.
const ERRORS: f64 = 4.0;
const TIMES: f64 = 1.5;
/// The busier half sends so many times as much, or nothing can be said.
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

/// Loss, and its variance by the scatter of the windows: bursts make it larger than that of single losses.
fn loss(windows: &[Window]) -> (f64, f64) {
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let frames = sum(|w| w.frames).max(1.0);
    let mean = sum(|w| w.lost) / frames;
    let squares = windows.iter().map(|w| {
        let beyond = w.lost - mean * w.frames;
        beyond * beyond
    });
    // Windows beside each other are alike where bursts are long.
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

/// Whether the second half of the recording is of another link than the first.
pub(super) fn changed(frames: &[Frame]) -> Option<Note> {
    let windows = windows(frames);
    let (first, second) = windows.split_at(windows.len() / 2);
    differ(first, second).map(|[first, second]| Note::Changed { first, second })
}

/// Whether more is lost while more is sent.
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
