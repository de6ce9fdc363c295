use airlane_base::{Duration, FrameLength, Instant, Rate, Streams};
use proptest::prelude::*;

use super::adaptive::{LENGTHS, LOOP};
use super::comparators::Mta;
use super::retrace::{END_TO_END, Overhead};
use super::statistics::share_above;
use super::*;
use crate::{ErrorModel, ErrorModelConfig};

fn model(text: &str) -> Generator {
    text.parse().unwrap()
}

fn generated(text: &str, len: u32) -> Blocks {
    let mut random = Streams::new(21, 0).stream("blocks");
    model(text).generate(len, BlocksHeader::default(), &mut random)
}

fn near(what: &str, is: f64, should: f64, within: f64) {
    assert!((is - should).abs() <= within, "{what}: {is}, not {should}");
}

/// The values of both sets in docs/spec/gsm-rlp.md, section 5.3, for lengths of 1, 7, 10, 20 and 50 blocks.
#[test]
fn closed_forms_of_the_published_links() {
    let published = |n: u32, loss: f64| (1450.0 - 300.0 / f64::from(n)) * (1.0 - loss);
    for (name, losses) in [
        ("onoff-c", [0.0469, 0.0796, 0.0898, 0.1171, 0.1768]),
        ("onoff-b", [0.0470, 0.0797, 0.0899, 0.1171, 0.1769]),
    ] {
        let model = model(name);
        for (n, loss) in [1, 7, 10, 20, 50].into_iter().zip(losses) {
            near(name, model.frame_erasure_rate(n), loss, 0.0001);
        }
        let goodput = |n| published(n, model.frame_erasure_rate(n));
        near(name, goodput(1), 1096.05, 0.15);
        near(name, goodput(7), 1295.05, 0.15);
        let best = (1..=100).max_by(|a, b| goodput(*a).total_cmp(&goodput(*b)));
        assert_eq!(best, Some(7), "{name}");
    }
    let Generator::OnOff { bursts, gaps } = model("onoff-c") else {
        panic!("onoff-c is a model of bursts and gaps")
    };
    near("bursts", bursts.mean(), 5.23, 0.01);
    near("cycle", bursts.mean() + gaps.mean(), 111.6, 0.1);
    near("above 2", 1.0 - bursts.above(2), 0.562, 0.001);
    near("above 18", bursts.above(18), 0.0446, 0.0002);
}

#[test]
fn a_chain_of_two_states_has_its_closed_form() {
    let (p, q) = (0.047, 0.0058);
    let back = q * (1.0 - p) / p;
    let gilbert = model(&format!("gilbert {q} {back}"));
    for n in [1, 2, 7, 50] {
        let should = 1.0 - (1.0 - p) * libm::pow(1.0 - q, f64::from(n - 1));
        near("gilbert", gilbert.frame_erasure_rate(n), should, 1e-9);
    }
    let slow = model("gilbert 0.000001 0.000001");
    near("equilibrium", slow.erasure_rate(), 0.5, 1e-9);
    near("circle", model("gilbert 1 1").erasure_rate(), 0.5, 1e-9);
}

#[test]
fn long_traces_are_as_their_models_say() {
    for text in [
        "bernoulli 0.047",
        "gilbert 0.006 0.12",
        "gilbert-elliott 0.01 0.3 0.001 0.8",
        "markov 0.99 0.01 0 0.1 0.8 0.1 0 0.2 0.8 / 0 0.3 0.9",
        "onoff-c",
    ] {
        let blocks = generated(text, 3_000_000);
        for n in [1, 7, 50] {
            let should = model(text).frame_erasure_rate(n);
            near(text, blocks.frame_erasure_rate(n), should, 0.005);
        }
    }
    // The tails were fitted on one trace of 18,000,000 blocks.
    let bursts = generated("onoff-b", 6_000_000).burst_lengths();
    near("above 26", share_above(&bursts, 26), 0.0449, 0.004);
}

/// 6,000 minutes of each model, in 60 pieces whose spread bounds the distance of the mean from the closed form.
#[test]
fn six_thousand_minutes_agree_with_the_closed_forms() {
    const PIECES: u32 = 60;
    for name in ["onoff-b", "onoff-c", "bernoulli 0.047"] {
        let model = model(name);
        let mut random = Streams::new(17, 0).stream("blocks");
        let pieces: Vec<Blocks> = (0..PIECES)
            .map(|_| model.generate(300_000, BlocksHeader::default(), &mut random))
            .collect();
        for n in [1, 2, 7, 10, 20, 50] {
            let goodput =
                |blocks: &Blocks| blocks.frames(n, Overhead::Published, 0).unwrap().goodput;
            let all: Vec<f64> = pieces.iter().map(goodput).collect();
            let mean = all.iter().sum::<f64>() / f64::from(PIECES);
            let squares: f64 = all.iter().map(|one| (one - mean) * (one - mean)).sum();
            let error = libm::sqrt(squares / f64::from(PIECES * (PIECES - 1)));
            let closed = (1450.0 - 300.0 / f64::from(n)) * (1.0 - model.frame_erasure_rate(n));
            near(&format!("{name}, {n} blocks"), mean, closed, 4.0 * error);
        }
    }
}

#[test]
fn a_good_radio_has_ten_minutes_with_erasures() {
    let blocks = generated("a-literal", 774_000);
    let minutes = blocks.minutes();
    assert_eq!(minutes.len(), 258);
    let bad: Vec<_> = minutes.iter().filter(|rate| **rate > 0.0).collect();
    assert_eq!(bad.len(), 10);
    assert!(bad.iter().all(|rate| **rate < 0.0025));
    let goodput = |n| 0.99 * blocks.frames(n, Overhead::Published, 0).unwrap().goodput;
    near("T(1)", goodput(1), 1138.4, 0.6);
    near("T(7)", goodput(7), 1392.2, 0.6);
    near("T(47)", goodput(47), 1423.4, 1.5);
}

#[test]
fn even_traces_are_best_at_two_blocks() {
    let blocks = generated("onoff-c", 3_000_000);
    let even = blocks.even();
    assert_eq!((even.len(), even.erased()), (blocks.len(), blocks.erased()));
    let best = even.best_frame(1..=100, Overhead::Published).unwrap();
    assert_eq!(best.blocks, 2);
    let factor = blocks.burst_error_factor(100, Overhead::Published).unwrap();
    assert!((3.0..=4.5).contains(&factor), "{factor}");
}

#[test]
fn packets_end_to_end_come_to_the_published_goodput() {
    // Packets of 1500 B in two readings: whole blocks, or a byte stream not aligned to blocks.
    let blocks = generated("onoff-c", 18_000_000);
    let whole = blocks.frames(50, Overhead::Fixed(END_TO_END), 0).unwrap();
    near("whole blocks", whole.goodput, 1196.2, 25.0);
    let stream = blocks.packets(1507, 1460).unwrap();
    near("stream", stream.goodput, 1193.5, 25.0);
    near("lost", stream.erasure_rate(), 0.178, 0.02);
    let rows = blocks.packet_loss_rows(1507);
    near("two and more", share_above(&rows, 1), 0.69, 0.02);
}

/// Two models alternating every ten minutes.
fn in_turn(models: [&str; 2], len: u32) -> Blocks {
    const TURN: u32 = 30_000;
    let all = models.map(|model| generated(model, len));
    let mut mixed = Blocks::new(BlocksHeader::default());
    let mut rest = all;
    while !rest[0].is_empty() {
        for one in &mut rest {
            let [now, tail] = one.split(TURN);
            *one = tail;
            for (erased, len) in now.rows().flatten() {
                mixed.push(erased, len);
            }
        }
    }
    mixed
}

/// Konrad et al.'s model of a trace, and all its erasures in one run (docs/spec/gsm-rlp.md, section 5.5).
#[test]
fn comparators_match_the_statistics_of_a_trace() {
    for (name, change_of_state) in [("onoff-c", 16.5), ("onoff-b", 20.6)] {
        let blocks = generated(name, 6_000_000);
        let mta = Mta::extract(&blocks).unwrap();
        near("Cs", mta.change_of_state, change_of_state, 0.6);
        let mut random = Streams::new(3, 0).stream("mta");
        let drawn = mta.generate(&blocks, &mut random);
        assert_eq!(drawn.len(), blocks.len());
        // The erasure rate and the first lengths match the trace; long-range dependence does not.
        near("erased", drawn.erasure_rate(), blocks.erasure_rate(), 0.006);
        let lost = |blocks: &Blocks, n| {
            let frames = blocks.frames(n, Overhead::Published, 0).unwrap();
            frames.erasure_rate()
        };
        near("F(2)", lost(&drawn, 2), lost(&blocks, 2), 0.006);
        assert!(lost(&drawn, 50) > lost(&blocks, 50), "{mta:?}");
        // The chain knows a burst's age only up to its order, so long bursts are rarer.
        let again = Mta::extract(&drawn).unwrap().change_of_state;
        assert!(again < mta.change_of_state, "{again}: {mta:?}");
    }
    let blocks = generated("onoff-c", 600_000);
    let single = blocks.single_burst();
    assert_eq!(
        (single.len(), single.erased()),
        (blocks.len(), blocks.erased())
    );
    assert_eq!(single.bursts().len(), 1);
    let best = |blocks: &Blocks| blocks.best_frame(1..=100, Overhead::Published).unwrap();
    // The longest length wins, except for partial frames at both ends of the burst: two frames of 100 blocks waste what
    // 86 save.
    assert!((86..=100).contains(&best(&single).blocks));
    assert!(best(&single).goodput > best(&blocks).goodput);
    assert_eq!(Mta::extract(&generated("bernoulli 0", 1_000)), None);
}

/// The rule of docs/spec/gsm-rlp.md, section 3.8, against the best fixed length chosen in hindsight.
#[test]
fn lengths_that_follow_the_link_are_as_good_as_the_best_fixed_one() {
    let of = |blocks: &Blocks| {
        let best = blocks.best_frame(1..=100, Overhead::Published).unwrap();
        blocks.adaptive(LENGTHS, Overhead::Published, LOOP) / best.goodput
    };
    for (name, len) in [
        ("onoff-b", 3_000_000),
        ("onoff-c", 3_000_000),
        ("a-literal", 774_000),
    ] {
        let ratio = of(&generated(name, len));
        assert!(ratio >= 0.998, "{name}: {ratio}");
    }
    let ratio = of(&in_turn(["a-literal", "onoff-c"], 1_500_000));
    assert!(ratio >= 1.01, "A and C in turn: {ratio}");
    let ratio = of(&in_turn(["a-literal", "bernoulli 0.047"], 1_500_000));
    assert!(ratio >= 1.03, "A and Bernoulli in turn: {ratio}");

    // The oracle knows the best length of each minute, so no adaptive rule exceeds it.
    let blocks = generated("onoff-c", 600_000);
    let best = blocks.best_frame(1..=47, Overhead::Published).unwrap();
    let oracle = blocks.oracle(3000, LENGTHS, Overhead::Published);
    assert!((1.005..1.05).contains(&(oracle / best.goodput)), "{oracle}");
}

#[test]
fn no_outcomes_lead_beyond_the_bounds() {
    let mut rule = FrameLength::new([2, 30], 6.0, 29.0, 1.0);
    assert_eq!(rule.length(), 7, "where nothing is known");
    (0..10_000).for_each(|_| rule.outcome(30, false));
    assert_eq!(rule.length(), 30);
    for round in 0..10_000 {
        rule.outcome(1, round % 2 == 0);
    }
    assert_eq!(rule.length(), 2);
}

#[test]
fn refusals_say_what_would_be_right() {
    let refusal = |text: &str| Blocks::read(text).unwrap_err().to_string();
    assert!(refusal("0102").contains("line 1: \"0102\" is neither 0 nor 1"));
    assert!(refusal("00\nrun 1").contains("line 2: \"run\" is neither 0 nor 1"));
    assert!(refusal("").contains("no blocks"));
    assert!(refusal("r 3 x").contains("no length of a row"));
    assert!(refusal("r 99999999 2").contains("at most 100000000"));
    let head = "# airlane blocks 1\n# block = \"20 ms\" ";
    assert!(refusal(&format!("{head} parts = [3]\n00")).contains("3 blocks together"));
    assert!(refusal(&format!("{head} length = 3\n00")).contains("none of block, size"));
    assert!(refusal("# airlane blocks 1\n# block = \"0 s\"\n0").contains("longer than 0 s"));
    let refusal = |text: &str| text.parse::<Generator>().unwrap_err().to_string();
    assert!(refusal("poisson 3").contains("no model of blocks; one of bernoulli"));
    assert!(refusal("gilbert 0.1").contains("gilbert GOOD-TO-BAD BAD-TO-GOOD"));
    assert!(refusal("gilbert 0.1 1.5").contains("1.5 is no probability"));
    assert!(refusal("markov 0.5 0.4 0 1 / 0 1").contains("sum up to 1"));
    assert!(refusal("on-off 1x0.5 / 1x10").contains("at least 1 block"));
}

/// A frame is lost if a block that it overlaps is erased.
fn naive(blocks: &[bool], from_ms: u64, to_ms: u64) -> bool {
    let last = to_ms.saturating_sub(1).max(from_ms) / 20;
    (from_ms / 20..=last).any(|at| blocks[at as usize % blocks.len()])
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        parts in prop::collection::vec(prop::collection::vec(any::<bool>(), 0..200), 1..5),
        rows in any::<bool>(),
    ) {
        let mut blocks = Blocks::new(BlocksHeader { origin: Some("here".into()), seed: Some(3), ..Default::default() });
        for part in &parts {
            blocks.end_part();
            part.iter().for_each(|erased| blocks.push(*erased, 1));
        }
        prop_assume!(!blocks.is_empty());
        let text = if rows { blocks.to_rows() } else { blocks.to_text() };
        prop_assert!(Blocks::is_blocks(text.as_bytes()));
        let read = Blocks::read(&text).unwrap();
        prop_assert_eq!(read.bursts(), blocks.bursts());
        prop_assert!(read.parts().eq(blocks.parts()));
        prop_assert_eq!(read.header, blocks.header);
    }

    #[test]
    fn no_text_panics(text in "[01r #a-z=\"\\[\\]0-9,\n]{0,200}") {
        let _ = Blocks::read(&text);
        let _ = Blocks::read(&format!("# airlane blocks 1\n# {text}"));
        let _ = text.parse::<Generator>();
    }

    #[test]
    fn sweeps_agree_with_a_direct_count(
        erased in prop::collection::vec(prop::bool::weighted(0.2), 1..400), n in 1u32..20, phase in 0u32..20,
    ) {
        let blocks = Blocks::from_blocks(BlocksHeader::default(), erased.iter().copied());
        let lost = erased.get(phase as usize..).map(|rest| {
            let frames = rest.chunks_exact(n as usize);
            frames.filter(|frame| frame.contains(&true)).count() as u32
        });
        let frames = blocks.frames(n, Overhead::Published, phase);
        prop_assert_eq!(frames.map(|frames| frames.lost), lost.filter(|_| frames.is_some()));
        let windows = erased.windows(n as usize);
        let (all, hit) = (windows.len(), windows.filter(|row| row.contains(&true)).count());
        if all > 0 {
            prop_assert_eq!(blocks.frame_erasure_rate(n), hit as f64 / all as f64);
        }
        let len = 7 * n;
        let packets = (0..erased.len() as u32 * 30 / len).filter(|i| {
            let [from, to] = [i * len / 30, ((i + 1) * len - 1) / 30];
            erased[from as usize..=to as usize].contains(&true)
        });
        if let Some(found) = blocks.packets(len, len) {
            prop_assert_eq!(found.lost, packets.count() as u64);
        }
    }

    #[test]
    fn two_halves_make_the_whole(erased in prop::collection::vec(any::<bool>(), 2..200), at in 0u32..200) {
        let blocks = Blocks::from_blocks(BlocksHeader::default(), erased.iter().copied());
        let halves = blocks.split(at);
        prop_assert_eq!(halves[0].len() + halves[1].len(), blocks.len());
        prop_assert_eq!(halves[0].erased() + halves[1].erased(), blocks.erased());
    }

    #[test]
    fn replays_lose_frames_that_overlap_erasures(
        erased in prop::collection::vec(prop::bool::weighted(0.1), 1..60),
        sends in prop::collection::vec((0u64..300, 0u64..90), 1..80),
    ) {
        let blocks = Blocks::from_blocks(BlocksHeader::default(), erased.iter().copied());
        let mut config = BlocksConfig::of_file("radio.blocks".into(), None);
        config.load(blocks.to_text().as_bytes()).unwrap();
        let config = ErrorModelConfig::Blocks(config);
        let rate = Rate::from_bps(12_000).unwrap();
        let mut errors = ErrorModel::new(&config, rate, Streams::new(1, 0), "down");
        let mut now = 0;
        for (wait, long) in sends {
            let [from, to] = [now + wait, now + wait + long];
            let at = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
            prop_assert_eq!(errors.loses(at(from), at(to), 1), naive(&erased, from, to));
            now = to;
        }
    }
}

/// A model's loss rate agrees with its closed form, wherever frames begin.
#[test]
fn models_lose_their_nominal_share() {
    let config = ErrorModelConfig::Blocks(BlocksConfig::of_model(model("gilbert 0.02 0.3"), None));
    let rate = Rate::from_bps(12_000).unwrap();
    let mut errors = ErrorModel::new(&config, rate, Streams::new(1, 0), "down");
    let bytes = 50;
    let on_air = rate.transmission_time(bytes);
    let (mut lost, sent) = (0u32, 400_000u32);
    let mut at = Instant::ORIGIN;
    for number in 0..u64::from(sent) {
        lost += u32::from(errors.loses(at, at + on_air, bytes));
        // Not aligned to the blocks, so that all phases occur equally.
        at += on_air + Duration::from_micros(number * 7919 % 20_000);
    }
    let should = config.loss_probability(rate, bytes);
    near("lost", f64::from(lost) / f64::from(sent), should, 0.003);
}
