use super::*;

#[derive(Debug, Deserialize)]
struct File {
    errors: ErrorsConfig,
}

fn read(text: &str) -> Result<ErrorsConfig, String> {
    toml::from_str::<File>(text)
        .map(|f| f.errors)
        .map_err(|e| e.to_string())
}

fn refusal(text: &str) -> String {
    read(text).expect_err("this must be refused")
}

#[test]
fn one_model_for_both_directions_or_one_for_each() {
    let p = |p| Probability::new(p).unwrap();
    let both = read("errors = { kind = 'uniform', rate = 0.05 }").unwrap();
    let uniform = ErrorModelConfig::Uniform { rate: p(0.05) };
    assert_eq!(both, ErrorsConfig::from(uniform));

    let each = read(
        "errors.down = { kind = 'two-state', good = '10 s', bad = '0.1 s', ber_good = 1e-6, ber_bad = 0.01 }\n\
         errors.up = { kind = 'byte-exponential', mean = '131072 B' }",
    )
    .unwrap();
    let mean = Size::from_bytes(131_072);
    assert_eq!(
        each.up,
        ErrorModelConfig::ByteExponential { mean, burst: None }
    );
    assert!(matches!(each.down, ErrorModelConfig::TwoState { bad, .. }
        if bad == Duration::from_millis(100)));

    let one = read("errors.up = { kind = 'uniform', rate = 1 }").unwrap();
    assert_eq!(one.down, ErrorModelConfig::None);
    assert_eq!(one.up, ErrorModelConfig::Uniform { rate: p(1.0) });
}

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "errors = { kind = 'none' }",
        "errors = { kind = 'uniform', rate = 0.05 }",
        "errors.down = { kind = 'none' }\nerrors.up = { kind = 'byte-exponential', mean = '1 kB' }",
        "errors = { kind = 'gilbert-elliott', good_to_bad = 0.01, bad_to_good = 0.3, loss_good = 0, loss_bad = 1 }",
        "errors = { kind = 'blocks', model = 'on-off 1x5 / 0.5x20+0.5x200', block = '10 ms' }",
        "errors = { kind = 'blocks', file = 'radio.blocks', start = 'random' }",
    ] {
        let errors = read(text).unwrap();
        let json = serde_json::to_string(&errors).unwrap();
        assert_eq!(serde_json::from_str::<ErrorsConfig>(&json).unwrap(), errors);
    }
}

#[test]
fn refusals_say_what_is_wrong_and_what_would_be_right() {
    let e = refusal("errors = { rate = 0.05 }");
    assert!(e.contains("`kind`") && e.contains("\"two-state\""), "{e}");
    let e = refusal("errors = { kind = 'unifrom', rate = 0.05 }");
    assert!(e.contains("unifrom") && e.contains("`uniform`"), "{e}");
    let e = refusal("errors = { kind = 'uniform', rat = 0.05 }");
    assert!(e.contains("`rat`") && e.contains("`rate`"), "{e}");
    let e = refusal("errors = { kind = 'uniform' }");
    assert!(e.contains("need `rate`"), "{e}");
    let e = refusal("errors = { kind = 'none', rate = 0.05 }");
    assert!(e.contains("`rate` does not belong"), "{e}");
    let e = refusal("errors = { kind = 'uniform', rate = 0.05, mean = '3 B' }");
    assert!(e.contains("`mean` does not belong"), "{e}");
    let e = refusal("errors = { kind = 'uniform', rate = 1.5 }");
    assert!(e.contains("1.5") && e.contains("between 0 and 1"), "{e}");
    let e = refusal("errors = { kind = 'byte-exponential', mean = '0 B' }");
    assert!(e.contains("at least 1 B"), "{e}");
    let e = refusal(
        "errors = { kind = 'two-state', good = '0 s', bad = '1 s', ber_good = 0, ber_bad = 1 }",
    );
    assert!(e.contains("`good` is 0 s") && e.contains("1 us"), "{e}");
    let e = refusal(
        "errors = { kind = 'gilbert-elliott', good_to_bad = 0, bad_to_good = 0, loss_good = 0, loss_bad = 1 }",
    );
    assert!(e.contains("above 0"), "{e}");
    let e = refusal("errors = { kind = 'blocks' }");
    assert!(e.contains("need `model`"), "{e}");
    let e = refusal("errors = { kind = 'blocks', file = 'a', model = 'bernoulli 0.1' }");
    assert!(e.contains("`model` does not belong"), "{e}");
    let e = refusal("errors = { kind = 'blocks', model = 'bernoulli 3' }");
    assert!(e.contains("no probability"), "{e}");
    let e = refusal("errors = { kind = 'blocks', model = 'bernoulli 0', block = '0 s' }");
    assert!(e.contains("at least 1 us"), "{e}");
    let e = refusal("errors.kind = 'none'\nerrors.up = { kind = 'none' }");
    assert!(e.contains("either"), "{e}");
    let e = refusal("errors.rate = 0.1\nerrors.up = { kind = 'none' }");
    assert!(e.contains("`rate` stands beside"), "{e}");
}

#[test]
fn a_refusal_names_the_line() {
    let e = refusal("\n\nerrors = { kind = 'uniform', rate = 7 }");
    assert!(e.contains("line 3"), "{e}");
}

/// Xylomenos 1999 as restated in section 12.1 of docs/spec/multi-service.md, to its printed digits.
#[test]
fn closed_forms_of_the_pcs_link() {
    let rate = Rate::from_bps(64_000).unwrap();
    let expected = [
        (251, [1.46, 2.43, 5.22, 9.53]),
        (41, [1.01, 1.94, 4.64, 8.81]),
        (3, [0.21, 0.42, 1.02, 1.95]),
        (2, [0.15, 0.29, 0.71, 1.35]),
    ];
    for (bytes, percent) in expected {
        for (bad_ms, percent) in [100, 200, 500, 1000].into_iter().zip(percent) {
            let model = ErrorModelConfig::TwoState {
                good: Duration::from_secs(10),
                bad: Duration::from_millis(bad_ms),
                ber_good: Probability::new(1e-6).unwrap(),
                ber_bad: Probability::new(1e-2).unwrap(),
            };
            let loss = model.loss_probability(rate, bytes) * 100.0;
            assert!((loss - percent).abs() <= 0.005, "{bytes} B: {loss} %");
        }
    }
}

#[test]
fn closed_form_with_a_hopeless_bad_state() {
    let model = ErrorModelConfig::TwoState {
        good: Duration::from_secs(9),
        bad: Duration::from_secs(1),
        ber_good: Probability::ZERO,
        ber_bad: Probability::new(1.0).unwrap(),
    };
    // A frame this short meets either the bad state or none of it: a tenth of the time.
    let loss = model.loss_probability(Rate::from_bps(1_000_000_000).unwrap(), 1);
    assert!((loss - 0.1).abs() < 1e-6, "{loss}");
}
