//! Every scheme in both header profiles, with the same suite.

use crate::conformance::scheme::Contract;
use airlane_link::HeaderProfile::{Live, Study};
use airlane_testkit::Reordering;

const DEFAULT: Contract = Contract {
    scheme: "kind = \"default\"",
    header: Live,
    window: 0,
    kept: 0,
    in_order: false,
    once: false,
    sure_timers: true,
    copies: false,
    originals_in_order: false,
    reordering: Reordering::Any,
};

const SR_M2: Contract = Contract {
    scheme: "kind = \"sr-m2\", timers = \"tight\"",
    header: Live,
    window: 20,
    kept: 0,
    in_order: true,
    once: true,
    sure_timers: true,
    copies: false,
    originals_in_order: false,
    reordering: Reordering::Any,
};

const GBN: Contract = Contract {
    scheme: "kind = \"gbn\", timers = \"tight\"",
    ..SR_M2
};

const SR: Contract = Contract {
    scheme: "kind = \"sr\", timers = \"tight\"",
    ..SR_M2
};

const SR_M1: Contract = Contract {
    scheme: "kind = \"sr-m1\", timers = \"tight\"",
    ..SR_M2
};

const SR_BITMAP: Contract = Contract {
    scheme: "kind = \"sr-bitmap\", timers = \"tight\"",
    ..SR_M2
};

const RLP: Contract = Contract {
    scheme: "kind = \"rlp\", timers = \"tight\"",
    ..SR_M2
};

const RLP_OOS: Contract = Contract {
    scheme: "kind = \"rlp-oos\", timers = \"tight\"",
    in_order: false,
    ..RLP
};

const GSM_RLP: Contract = Contract {
    scheme: "kind = \"gsm-rlp\", timers = \"tight\"",
    ..SR_M2
};

/// Thin: copies wait for the time of two full frames, and are limited by a token bucket that is soon empty.
const SR_M2_COPIED: Contract = Contract {
    scheme: "kind = \"sr-m2\", timers = \"tight\", keepalives = 4, repeat-naks = true, \
             copies = { number = 2, after = \"16 ms\", share = 0.2 }",
    sure_timers: false,
    copies: true,
    ..SR_M2
};

const RLP_OOS_COPIED: Contract = Contract {
    scheme: "kind = \"rlp-oos\", timers = \"tight\", \
             copies = { number = 2, after = \"16 ms\", share = 0.2 }",
    sure_timers: false,
    copies: true,
    ..RLP_OOS
};

const SR_M2_BY_FLOW: Contract = Contract {
    scheme: "kind = \"sr-m2\", timers = \"tight\", repeat-naks = true, order = \"flow\"",
    ..SR_M2
};

/// A window of packets may be held to even out the delay.
const SR_M2_DEJITTERED: Contract = Contract {
    scheme: "kind = \"sr-m2\", timers = \"tight\", repeat-naks = true, dejitter = true",
    kept: 20,
    ..SR_M2
};

/// Eight open blocks, the one being sent, and its parities.
const RSE: Contract = Contract {
    scheme: "kind = \"rse\", block = 4, parity = 2",
    kept: 9 * (4 + 2),
    ..XOR
};

/// Open blocks: two of four packets that can be requested, and one more; two blocks of parities.
const RSE_AD: Contract = Contract {
    scheme: "kind = \"rse-ad\", block = 4, initial = 0, parity = 3, timers = \"tight\"",
    window: 8,
    kept: 3 * (4 + 3) + 2 * 3 + 4,
    in_order: false,
    sure_timers: true,
    ..RSE
};

/// For packets that are not TCP it acts as raw.
const SNOOP: Contract = Contract {
    scheme: "kind = \"snoop\", base-station = \"here\"",
    ..DEFAULT
};

/// Parity is sent without request.
const XOR: Contract = Contract {
    scheme: "kind = \"xor\", block = 4",
    once: true,
    sure_timers: false,
    ..DEFAULT
};

const XOR_AD: Contract = Contract {
    scheme: "kind = \"xor-ad\", block = 4, silence = \"30 ms\"",
    ..XOR
};

/// The same, with acknowledgments that prevent numbers from being reused too early.
const fn study_window(contract: Contract) -> Contract {
    Contract {
        originals_in_order: false,
        ..study(contract)
    }
}

/// The same, with timers from measured round trips.
const fn measured(contract: Contract, scheme: &'static str) -> Contract {
    Contract {
        scheme,
        sure_timers: false,
        ..contract
    }
}

/// On a radio link: original frames arrive once and in order.
const fn study(contract: Contract) -> Contract {
    Contract {
        header: Study,
        originals_in_order: true,
        reordering: Reordering::Within(256 - 2 * 20),
        ..contract
    }
}

/// The same, with no frame duplicated or late.
const fn no_reordering(contract: Contract) -> Contract {
    Contract {
        reordering: Reordering::None,
        ..study(contract)
    }
}

scheme_conformance!(default_live, DEFAULT);
scheme_conformance!(gbn_live, GBN);
scheme_conformance!(sr_live, SR);
scheme_conformance!(sr_m1_live, SR_M1);
scheme_conformance!(sr_m2_live, SR_M2);
scheme_conformance!(sr_m2_live_copied, SR_M2_COPIED);
scheme_conformance!(sr_m2_live_by_flow, SR_M2_BY_FLOW);
scheme_conformance!(sr_m2_live_dejittered, SR_M2_DEJITTERED);
scheme_conformance!(rlp_oos_live_copied, RLP_OOS_COPIED);
scheme_conformance!(sr_bitmap_live, SR_BITMAP);
scheme_conformance!(rlp_live, RLP);
scheme_conformance!(rlp_oos_live, RLP_OOS);
scheme_conformance!(gsm_rlp_live, GSM_RLP);

scheme_conformance!(snoop_live, SNOOP);
scheme_conformance!(xor_live, XOR);
scheme_conformance!(xor_ad_live, XOR_AD);
scheme_conformance!(rse_live, RSE);
scheme_conformance!(rse_ad_live, RSE_AD);

scheme_conformance!(default_study, study(DEFAULT));
scheme_conformance!(gbn_study, study_window(GBN));
scheme_conformance!(sr_study, study_window(SR));
scheme_conformance!(sr_m1_study, study_window(SR_M1));
scheme_conformance!(sr_m2_study, study_window(SR_M2));
scheme_conformance!(sr_bitmap_study, study_window(SR_BITMAP));
scheme_conformance!(rlp_study, study(RLP));
scheme_conformance!(rlp_oos_study, study(RLP_OOS));
scheme_conformance!(gsm_rlp_study, no_reordering(GSM_RLP));
scheme_conformance!(snoop_study, study(SNOOP));
scheme_conformance!(xor_study, no_reordering(XOR));
scheme_conformance!(xor_ad_study, no_reordering(XOR_AD));
scheme_conformance!(rse_study, no_reordering(RSE));
scheme_conformance!(rse_ad_study, no_reordering(RSE_AD));

scheme_conformance!(
    gbn_live_measured,
    measured(GBN, "kind = \"gbn\", timers = \"measured\"")
);
scheme_conformance!(
    sr_live_measured,
    measured(SR, "kind = \"sr\", timers = \"measured\"")
);
scheme_conformance!(
    sr_m1_live_measured,
    measured(SR_M1, "kind = \"sr-m1\", timers = \"measured\"")
);
scheme_conformance!(
    sr_m2_live_measured,
    measured(SR_M2, "kind = \"sr-m2\", timers = \"measured\"")
);
scheme_conformance!(
    sr_bitmap_live_measured,
    measured(SR_BITMAP, "kind = \"sr-bitmap\", timers = \"measured\"")
);
scheme_conformance!(
    rlp_live_measured,
    Contract {
        scheme: "kind = \"rlp\", timers = \"measured\"",
        ..RLP
    }
);
scheme_conformance!(
    gsm_rlp_live_measured,
    measured(GSM_RLP, "kind = \"gsm-rlp\", timers = \"measured\"")
);
scheme_conformance!(
    gsm_rlp_live_go_back,
    Contract {
        scheme: "kind = \"gsm-rlp\", repair = \"go-back\", persistence = { frames = 2 }, timers = \"tight\"",
        ..GSM_RLP
    }
);
scheme_conformance!(
    sr_m2_each_from_hand_over,
    Contract {
        scheme: "kind = \"sr-m2\", timeout-resends = \"each\", timer-origin = \"hand-over\", timers = \"relaxed\"",
        ..SR_M2
    }
);
scheme_conformance!(
    gbn_from_hand_over,
    Contract {
        scheme: "kind = \"gbn\", timer-origin = \"hand-over\", timers = \"relaxed\"",
        ..GBN
    }
);
