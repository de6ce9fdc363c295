//! The share of the machine's CPU time that was not available to a measurement: what its hypervisor gave to other
//! machines, and what other programs used.
//!
//! From `/proc/stat` (proc(5)): `steal` is the time in which a processor had work and did not run. Other programs are
//! all but this one and its children that have ended. Interrupt time is not attributed to anyone, because the
//! measurement's own packets cause it.

use std::fmt;
use std::io;

/// A larger share makes a measured rate or delay unreliable.
pub const MUCH: f64 = 0.05;

/// The start of an observation.
#[derive(Clone, Copy, Debug)]
pub struct MachineWatch(Ticks);

impl MachineWatch {
    /// Starts now.
    ///
    /// # Errors
    /// If there is no `/proc`.
    pub fn begin() -> io::Result<Self> {
        Ticks::now().map(Self)
    }

    /// The time lost since the start.
    ///
    /// # Errors
    /// If there is no `/proc`.
    pub fn lost(&self) -> io::Result<LostTime> {
        Ok(LostTime::between(self.0, Ticks::now()?))
    }
}

/// Shares of the time of all processors, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LostTime {
    /// Taken by the hypervisor.
    pub stolen: f64,
    /// Used by other programs.
    pub others: f64,
}

impl LostTime {
    fn between(begin: Ticks, end: Ticks) -> Self {
        let all = end.all.saturating_sub(begin.all).max(1) as f64;
        let part = |ticks: u64| ticks as f64 / all;
        let programs = end.programs.saturating_sub(begin.programs);
        let own = end.own.saturating_sub(begin.own);
        Self {
            stolen: part(end.stolen.saturating_sub(begin.stolen)),
            others: part(programs.saturating_sub(own)),
        }
    }

    /// Whether figures from that time are unreliable.
    pub fn spoils(&self) -> bool {
        self.stolen + self.others > MUCH
    }
}

impl fmt::Display for LostTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all, stolen, others] =
            [self.stolen + self.others, self.stolen, self.others].map(|part| part * 100.0);
        write!(
            f,
            "the machine lost {all:.1} % of its time ({stolen:.1} % stolen, {others:.1} % to other programs)"
        )?;
        match self.spoils() {
            true => write!(f, ": SPOILT, measure again"),
            false => Ok(()),
        }
    }
}

/// Times since boot, summed over all processors, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
    /// Of all programs.
    programs: u64,
    /// Of this program, and of children that it has waited for.
    own: u64,
}

impl Ticks {
    fn now() -> io::Result<Self> {
        let machine = std::fs::read_to_string("/proc/stat")?;
        let own = std::fs::read_to_string("/proc/self/stat")?;
        Self::read(&machine, &own).ok_or_else(|| io::Error::other("/proc/stat has another form"))
    }

    fn read(machine: &str, own: &str) -> Option<Self> {
        let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = line
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        // Guest time is included in user and nice.
        let &[
            user,
            nice,
            system,
            _idle,
            _iowait,
            _irq,
            _softirq,
            stolen,
            ..,
        ] = &times[..]
        else {
            return None;
        };
        // The program's name is in parentheses and may contain blanks. After it: the state, and 10 other fields.
        let (_, rest) = own.rsplit_once(')')?;
        let own = rest.split_whitespace().skip(11).take(4);
        let own: Option<Vec<u64>> = own.map(|n| n.parse().ok()).collect();
        Some(Self {
            all: times[..8].iter().sum(),
            stolen,
            programs: user + nice + system,
            own: own?.iter().sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "cpu  100 10 50 1000 5 1 2 30 0 0\ncpu0 1 2 3 4\n";
    const END: &str = "cpu  160 10 80 1060 5 1 12 70 0 0\n";

    fn own(user: u64, children: u64) -> String {
        format!("7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 {user} 1 {children} 3 20 0 1 0 55 0 0\n")
    }

    #[test]
    fn stolen_and_foreign_processor_time_is_lost() {
        let begin = Ticks::read(BEGIN, &own(10, 0)).unwrap();
        let end = Ticks::read(END, &own(50, 30)).unwrap();
        // 200 ticks in all, 40 of them stolen; programs used 90, and 70 of these were ours.
        let lost = LostTime::between(begin, end);
        assert_eq!(
            lost,
            LostTime {
                stolen: 0.2,
                others: 0.1
            }
        );
        assert!(
            lost.spoils() && lost.to_string().contains("30.0 %"),
            "{lost}"
        );
        assert_eq!(LostTime::between(end, end), LostTime::default());
        assert!(!LostTime::default().spoils());
    }

    #[test]
    fn own_processor_time_is_not_lost() {
        let watch = MachineWatch::begin().unwrap();
        let begin = watch.0.own;
        let mut sum = 0u64;
        while Ticks::now().unwrap().own < begin + 3 {
            sum = (0..1_000_000).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
        }
        let lost = watch.lost().unwrap();
        assert!(lost.stolen + lost.others < 1.0, "{lost}");
        assert!(Ticks::read("cpu 1 2", &own(1, 1)).is_none());
        assert!(Ticks::read(BEGIN, "7").is_none());
    }
}
