//! The assertions of scripts about a connection's state. They are Python code, of which only comparisons of one value
//! with a number are understood.

use airlane_transport::Tcp;

/// Values that our endpoint has, too.
const KNOWN: [&str; 4] = [
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_unacked",
    "tcpi_total_retrans",
];

/// The assertions in a piece of code, as value and number; none for one that is not understood.
pub(super) fn read(code: &str) -> Vec<Option<(&str, u64)>> {
    let statements = code.split(['\n', ';']).map(str::trim);
    let assertions = statements.filter_map(|statement| statement.strip_prefix("assert "));
    assertions.map(one).collect()
}

fn one(text: &str) -> Option<(&str, u64)> {
    let comparison = text.split([',', '#']).next()?;
    let (name, number) = comparison.split_once("==")?;
    let name = KNOWN.into_iter().find(|known| *known == name.trim())?;
    Some((name, number.trim().parse().ok()?))
}

/// The endpoint's value.
pub(super) fn value(end: &Tcp, name: &str) -> u64 {
    let sender = end.sender();
    match name {
        "tcpi_snd_cwnd" => sender.cwnd() as u64,
        "tcpi_snd_ssthresh" => sender.ssthresh(),
        "tcpi_unacked" => sender.flight_size(),
        _ => sender.stats().retransmissions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_numbers_are_read_and_others_are_counted() {
        let code = " print(tcpi_snd_cwnd); assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd\n\
                    assert tcpi_ca_state == TCP_CA_Open\nassert 0 <= tcpi_rtt\nassert tcpi_unacked == 0";
        let read = read(code);
        assert_eq!(
            read,
            [
                Some(("tcpi_snd_cwnd", 10)),
                None,
                None,
                Some(("tcpi_unacked", 0))
            ]
        );
    }
}
