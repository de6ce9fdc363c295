use airlane_base::Streams;
use airlane_channel::blocks::{Blocks, BlocksHeader};

use super::*;

const FEW: Options = Options {
    samples: 99,
    seed: 5,
};

fn made(model: &str, len: u32, seed: u64) -> Blocks {
    let mut random = Streams::new(seed, 0).stream("blocks");
    let model: Generator = model.parse().unwrap();
    model.generate(len, BlocksHeader::default(), &mut random)
}

const FAMILIES: [Family; 4] = [
    Family::Bernoulli,
    Family::Gilbert,
    Family::GilbertElliott,
    Family::OnOff,
];

/// One trace of each kind, which families contain a model of it, and whether hidden chains of three
/// states do.
const KINDS: [(&str, [bool; 4], bool); 5] = [
    ("bernoulli 0.03", [true, true, true, true], true),
    ("gilbert 0.01 0.2", [false, true, true, true], true),
    (
        "gilbert-elliott 0.002 0.01 0.005 0.4",
        [false, false, true, false],
        true,
    ),
    (
        "markov 0.998 0.001 0.001 0.02 0.98 0 0.005 0 0.995 / 0.001 0.6 0.15",
        [false, false, false, false],
        true,
    ),
    ("onoff-c", [false, false, false, true], false),
];

/// A fit of a family without a model of the trace must be poor, and one of a family with such a
/// model must not be.
fn judge(kind: &str, blocks: &Blocks, family: Family, right: bool) {
    let fit = fit(blocks, family, FEW).unwrap();
    let worst = &fit.deviations[0];
    match right {
        // It need not be good: a trace of a simpler kind does not determine the parameters of a
        // richer family.
        true => assert_ne!(fit.verdict, Verdict::Poor, "{kind} as {family}: {worst:?}"),
        false => assert_eq!(fit.verdict, Verdict::Poor, "{kind} as {family}: {worst:?}"),
    }
}

#[test]
fn only_models_of_the_own_kind_fit_well() {
    for (kind, right, _) in KINDS {
        let blocks = made(kind, 200_000, 11);
        for (family, right) in FAMILIES.into_iter().zip(right) {
            judge(kind, &blocks, family, right);
        }
    }
}

#[test]
fn models_of_more_states_fit_only_their_own_kind() {
    for (kind, _, right) in KINDS {
        judge(kind, &made(kind, 60_000, 11), Family::Hidden(3), right);
    }
}

/// The names of a model's parameters in its text form, with their values there.
#[test]
fn parameters_of_known_models_are_in_their_intervals() {
    for (kind, family, values) in [
        ("bernoulli 0.03", Family::Bernoulli, vec![0.03]),
        ("gilbert 0.01 0.2", Family::Gilbert, vec![0.01, 0.2]),
        (
            "gilbert-elliott 0.002 0.01 0.005 0.4",
            Family::GilbertElliott,
            vec![0.002, 0.01, 0.005, 0.4],
        ),
        ("on-off 1x4 / 1x60", Family::OnOff, vec![4.0, 60.0]),
    ] {
        let (mut inside, mut all) = (0, 0);
        for seed in 0..5 {
            // The goodness of the fit does not matter here.
            let options = Options { samples: 1, seed };
            let fit = fit(&made(kind, 300_000, seed), family, options).unwrap();
            assert_eq!(fit.parameters.len(), values.len(), "{:?}", fit.parameters);
            for (parameter, value) in fit.parameters.iter().zip(&values) {
                let [low, high] = parameter.interval.expect("the trace is long enough");
                assert!(high / low < WIDEST, "{parameter:?}");
                inside += u32::from((low..=high).contains(value));
                all += 1;
            }
        }
        // On average 95 of 100.
        assert!(inside * 5 >= all * 4, "{kind}: {inside} of {all}");
    }
}

#[test]
fn short_traces_are_too_short_to_tell() {
    for (kind, family) in [
        ("gilbert 0.01 0.2", Family::Gilbert),
        ("bernoulli 0.01", Family::Bernoulli),
        ("gilbert 0.01 0.2", Family::OnOff),
    ] {
        let blocks = made(kind, 1_200, 3);
        let fit = fit(&blocks, family, FEW).unwrap();
        let Verdict::TooShort(longer) = fit.verdict else {
            panic!("{kind}: {:?}", fit.verdict)
        };
        assert!(longer > blocks.duration());
    }
}

#[test]
fn the_simplest_good_model_is_chosen() {
    let blocks = made("gilbert 0.01 0.2", 200_000, 2);
    let fits = FAMILIES.map(|family| fit(&blocks, family, FEW).unwrap());
    assert_eq!(choose(&fits).unwrap().family, Family::Gilbert);
    assert!(fits[1].held_out.unwrap() > 10.0, "{:?}", fits[1].held_out);
}

/// The likelihood computed over runs equals that computed block by block.
#[test]
fn rows_are_as_probable_as_their_blocks() {
    let blocks = made("gilbert-elliott 0.02 0.1 0.01 0.6", 3_000, 1);
    let model: Generator = "gilbert-elliott 0.03 0.2 0.02 0.7".parse().unwrap();
    let Generator::Markov(chain) = &model else {
        panic!("it is a chain")
    };
    let mut alive = chain.equilibrium();
    let mut log = 0.0;
    for (erased, len) in blocks.rows().flatten() {
        for _ in 0..len {
            for (p, loss) in alive.iter_mut().zip(chain.losses()) {
                *p *= if erased { *loss } else { 1.0 - loss };
            }
            let sum: f64 = alive.iter().sum();
            log += libm::log(sum);
            let next = |j: usize| (0..2).map(|i| alive[i] / sum * chain.moves()[i][j]).sum();
            alive = (0..2).map(next).collect();
        }
    }
    let rows = log_likelihood(&model, &blocks);
    assert!((rows - log).abs() < 1e-6 * log.abs(), "{rows}, {log}");
}

#[test]
fn unfittable_traces_are_reported() {
    let clean = Blocks::from_blocks(BlocksHeader::default(), [false; 100]);
    let error = fit(&clean, Family::Bernoulli, FEW).unwrap_err().to_string();
    assert!(error.contains("0 of 100 blocks are erased"), "{error}");
    let blocks = made("bernoulli 0.1", 1000, 1);
    assert_eq!(
        fit(&blocks, Family::Hidden(9), FEW).unwrap_err(),
        FitError::States(9)
    );
}
