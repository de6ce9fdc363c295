//! The octet stream of the L2R layer (GSM 07.02), which marks the part of a frame's information that is user data.
//!
//! Each frame begins with a status octet whose low five bits describe what follows: 30, data to the end; up to 23,
//! that many octets of data and then another status octet; 31, nothing. Its high bits carry modem control lines,
//! which do not change here.

/// The rest is data.
const FULL: u8 = 30;
/// The rest is empty.
const EMPTY: u8 = 31;
/// The most octets that a status octet counts.
const COUNTED: usize = 23;
const LOW: u8 = 31;

/// Packs as much of `data` as fits into `len` bytes of information; returns how many bytes that is.
pub fn pack(data: &[u8], len: usize, information: &mut Vec<u8>) -> usize {
    information.clear();
    if len == 0 {
        return 0;
    }
    if data.len() >= len - 1 {
        information.push(FULL);
        information.extend(&data[..len - 1]);
        return len - 1;
    }
    let mut taken = 0;
    while information.len() < len {
        let room = len - information.len() - 1;
        let part = (data.len() - taken).min(COUNTED).min(room);
        if part == 0 {
            information.push(EMPTY);
            break;
        }
        information.push(part as u8);
        information.extend(&data[taken..taken + part]);
        taken += part;
    }
    information.resize(len, 0);
    taken
}

/// Appends the data in a frame's information to `data`. False if the information is malformed; data appended before
/// the error stays.
pub fn unpack(information: &[u8], data: &mut Vec<u8>) -> bool {
    let mut rest = information;
    while let Some((status, after)) = rest.split_first() {
        match status & LOW {
            FULL => {
                data.extend(after);
                return true;
            }
            EMPTY => return true,
            counted => {
                let Some((part, after)) = after.split_at_checked(usize::from(counted)) else {
                    return false;
                };
                if usize::from(counted) > COUNTED {
                    return false;
                }
                data.extend(part);
                rest = after;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stream_is_restored_from_any_segmentation(
            data in prop::collection::vec(any::<u8>(), 0..2000),
            lens in prop::collection::vec(2_usize..400, 1..20),
        ) {
            let (mut at, mut back, mut information) = (0, Vec::new(), Vec::new());
            for len in lens.iter().cycle() {
                let taken = pack(&data[at..], *len, &mut information);
                prop_assert_eq!(information.len(), *len);
                prop_assert!(taken > 0 || at == data.len());
                at += taken;
                prop_assert!(unpack(&information, &mut back));
                if at == data.len() {
                    break;
                }
            }
            prop_assert_eq!(back, data);
        }

        #[test]
        fn any_information_unpacks_without_panic(information in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut data = Vec::new();
            unpack(&information, &mut data);
            prop_assert!(data.len() <= information.len());
        }
    }
}
