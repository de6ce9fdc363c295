//! Checks of the names in a live file.

use airlane_base::config::Problems;

/// Size of an interface name in Linux (`IFNAMSIZ`), terminating zero included.
const LONGEST_NAME: usize = 16;

/// Checks the name of a network interface.
pub(super) fn check_interface_name(path: &str, name: &str, such_as: &str, problems: &mut Problems) {
    let legal = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '%');
    let fits = (1..LONGEST_NAME).contains(&name.len());
    if !fits || !name.chars().all(legal) || matches!(name, "." | "..") {
        problems.add(
            path,
            format!("\"{name}\" cannot name an interface"),
            format!("use 1 to 15 letters and digits, such as \"{such_as}\""),
        );
    }
}

/// Whether a node or peer may have this name.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}
