//! What erases a block: the channel coding of full-rate data traffic, TCH/F9.6 (3GPP TS 45.003, section 3.3),
//! compared with published behaviour. No radio here is modelled slot by slot, so this is used only in tests.
//!
//! ```text
//! 240 bits + 4 zeros ─► rate 1/2, 16 states ─► 488 ─► punctured ─► 456 ─► interleaved over 22 slots of 114 bits
//! ```

use airlane_base::{Rng, Streams};

const INFORMATION: usize = 240;
const TAIL: usize = 4;
const CODED: usize = 456;
/// Slots that carry bits of one block, and the slots from the start of one block to that of the next.
const SPREAD: usize = 22;
const STEP: usize = 4;

/// G0 = 1+D^3+D^4 and G1 = 1+D+D^3+D^4, with the newest bit lowest.
const GENERATORS: [u8; 2] = [0b11001, 0b11011];

/// Which of the 488 bits are sent.
fn is_sent(bit: usize) -> bool {
    bit % 15 != 11
}

/// The two output bits for an input bit after a state.
fn output(state: u8, bit: u8) -> [u8; 2] {
    GENERATORS.map(|generator| ((state << 1 | bit) & generator).count_ones() as u8 & 1)
}

fn encode(information: &[u8; INFORMATION]) -> [u8; CODED] {
    let bits = information.iter().copied().chain([0; TAIL]);
    let mut state = 0;
    let all = bits.flat_map(|bit| {
        let out = output(state, bit);
        state = (state << 1 | bit) & 0xF;
        out
    });
    let mut sent = all.enumerate().filter(|(at, _)| is_sent(*at));
    std::array::from_fn(|_| sent.next().expect("456 bits are sent").1)
}

/// The slot of a coded bit, counted from the first slot of its block, and its place in that slot.
fn place(bit: usize) -> (usize, usize) {
    (bit % 19 + bit / 114, bit % 19 + 19 * (bit % 6))
}

/// The most likely information bits (Viterbi). An input is +1 for a one, -1 for a zero, and 0 for an erasure.
fn decode(came: &[i8; CODED]) -> [u8; INFORMATION] {
    const STEPS: usize = INFORMATION + TAIL;
    let mut came = came.iter();
    let mut weights = [i32::MIN / 2; 16];
    weights[0] = 0;
    let mut from = [[0_u8; 16]; STEPS];
    for (step, from) in from.iter_mut().enumerate() {
        let mut next = |at: usize| match is_sent(at) {
            true => i32::from(*came.next().expect("456 bits have come")),
            false => 0,
        };
        let pair = [next(2 * step), next(2 * step + 1)];
        let mut after = [i32::MIN / 2; 16];
        for state in 0..16_u8 {
            for bit in 0..=u8::from(step < INFORMATION) {
                let fits = output(state, bit).into_iter().zip(pair);
                let fits: i32 = fits
                    .map(|(out, came)| came * (2 * i32::from(out) - 1))
                    .sum();
                let to = usize::from((state << 1 | bit) & 0xF);
                if weights[usize::from(state)] + fits > after[to] {
                    after[to] = weights[usize::from(state)] + fits;
                    from[to] = state;
                }
            }
        }
        weights = after;
    }
    let mut information = [0; INFORMATION];
    let mut state = 0_u8;
    for step in (0..STEPS).rev() {
        if step < INFORMATION {
            information[step] = state & 1;
        }
        state = from[step][usize::from(state)];
    }
    information
}

/// How a lost slot appears to the receiver.
#[derive(Clone, Copy)]
enum Lost {
    /// As erasures.
    Known,
    /// As random bits.
    Unknown,
}

/// Whether the block that begins at a slot is erased, given which slots are lost.
fn is_erased(random: &mut Rng, begins: i32, how: Lost, lost: &dyn Fn(i32) -> bool) -> bool {
    let sent: [u8; INFORMATION] = std::array::from_fn(|_| u8::from(random.uniform() < 0.5));
    let coded = encode(&sent);
    let came = std::array::from_fn(|bit| {
        let as_sent = 2 * coded[bit] as i8 - 1;
        match how {
            _ if !lost(begins + place(bit).0 as i32) => as_sent,
            Lost::Known => 0,
            Lost::Unknown if random.uniform() < 0.5 => -1,
            Lost::Unknown => 1,
        }
    });
    decode(&came) != sent
}

/// The number of blocks that a run of lost slots erases, averaged over `rounds` and over the position of the blocks.
fn erased(random: &mut Rng, slots: i32, how: Lost, rounds: i32) -> f64 {
    let mut sum = 0;
    for round in 0..rounds {
        let phase = round % STEP as i32;
        let blocks = (-(SPREAD as i32)..slots + 4).filter(|at| at.rem_euclid(STEP as i32) == phase);
        sum += blocks
            .filter(|begins| is_erased(random, *begins, how, &|slot| (0..slots).contains(&slot)))
            .count();
    }
    sum as f64 / f64::from(rounds)
}

#[test]
fn bits_of_a_block_lie_in_22_slots() {
    let mut places: Vec<_> = (0..CODED).map(place).collect();
    let counts: Vec<_> = (0..SPREAD)
        .map(|slot| places.iter().filter(|place| place.0 == slot).count())
        .collect();
    let inner = [24; 16];
    let expected = [&[6, 12, 18][..], &inner, &[18, 12, 6]].concat();
    assert_eq!(counts, expected);
    // Each of a slot's 114 bits belongs to one block: blocks begin every four slots.
    let mut taken: Vec<_> = (0..8)
        .flat_map(|block| (0..CODED).map(move |bit| (block, place(bit))))
        .collect();
    taken
        .iter_mut()
        .for_each(|(block, place)| place.0 += *block * STEP);
    let mut all: Vec<_> = taken.into_iter().map(|(_, place)| place).collect();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b));
    places.sort_unstable();
    assert!(places.iter().all(|place| place.1 < 114));
}

/// LUD-C-33, and the known effect of fades: a few lost slots do no harm, more of them erase several blocks at once.
#[test]
fn losing_a_few_slots_of_interleaved_blocks_does_no_harm() {
    let random = &mut Streams::new(1, 0).stream("slots");
    for slots in 1..=7 {
        assert_eq!(erased(random, slots, Lost::Known, 40), 0.0, "{slots}");
    }
    assert_eq!(erased(random, 1, Lost::Unknown, 40), 0.0);
    for (slots, how, expected) in [
        (9, Lost::Known, 3.5),
        (12, Lost::Known, 4.2),
        (20, Lost::Known, 6.2),
        (3, Lost::Unknown, 4.0),
        (10, Lost::Unknown, 6.4),
        (20, Lost::Unknown, 8.9),
    ] {
        let blocks = erased(random, slots, how, 80);
        assert!((blocks - expected).abs() < 0.4, "{slots}: {blocks} blocks");
    }
}

/// Scattered losses of marginal signal erase single blocks.
#[test]
fn slots_lost_apart_erase_few_blocks() {
    let random = &mut Streams::new(2, 0).stream("slots");
    let mut ratio = |rate: f64, how| {
        let blocks = 1_000;
        let count = (0..blocks).filter(|_| {
            let lost: [bool; SPREAD] = std::array::from_fn(|_| random.uniform() < rate);
            is_erased(random, 0, how, &|slot| lost[slot as usize])
        });
        count.count() as f64 / f64::from(blocks)
    };
    assert!(ratio(0.1, Lost::Known) < 0.005);
    let known = [ratio(0.2, Lost::Known), ratio(0.3, Lost::Known)];
    let unknown = [0.1, 0.2, 0.3].map(|rate| ratio(rate, Lost::Unknown));
    for (found, expected) in known
        .into_iter()
        .chain(unknown)
        .zip([0.02, 0.17, 0.24, 0.69, 0.93])
    {
        assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    }
}
