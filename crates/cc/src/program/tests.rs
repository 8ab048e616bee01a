//! Meaning of the language, its refusals, and its limits.

use super::*;
use crate::testing::{RULES, ack, options, stream, view};
use crate::{Algorithm, CaState, CongestionControl, Event, RateSample, Text, View, Window};
use std::sync::Arc;

/// A program with this in `on ack`.
fn on_ack(statements: &str) -> String {
    format!(
        "state kept = 1.5\nparam chosen = 4\non ack {{\n{statements}\n}}\non loss {{ ssthresh = 2 }}\n"
    )
}

fn algorithm_of(text: &str) -> Algorithm {
    made_with(text, &[])
}

fn made_with(text: &str, given: &[(&str, f64)]) -> Algorithm {
    let program = Program::parse(text).unwrap_or_else(|misread| panic!("{misread}\n{text}"));
    of(&Arc::new(program), given)
}

fn of(program: &Arc<Program>, given: &[(&str, f64)]) -> Algorithm {
    let text = Text::Program(Arc::clone(program));
    Algorithm::of(&text, &options(given), &RULES, stream()).unwrap()
}

/// The window that `on ack` sets it to, from 10 and for 2 packets.
fn window_after(statements: &str) -> Result<u32, Fault> {
    let mut algorithm = algorithm_of(&on_ack(statements));
    let mut window = Window::new(10);
    let _ = algorithm.cong_avoid(&view(), &mut window, 2);
    algorithm.fault().cloned().map_or(Ok(window.cwnd), Err)
}

#[test]
fn expressions_are_those_of_school() {
    for (expression, value) in [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("20 - 3 - 2", 15),
        ("100 / 5 / 2", 10),
        ("-3 + 10", 7),
        ("2 * -3 + 10", 4),
        ("20 - -3", 23),
        ("- -3", 3),
        ("acked * cwnd", 20),
        ("min(7, 3) + max(7, 3)", 10),
        ("pow(2, 5)", 32),
        ("sqrt(49) + cbrt(27)", 10),
        ("floor(7.9) + ceil(7.1)", 15),
        ("abs(3 - 8)", 5),
        ("exp(log(12)) + 0.5", 12),
        ("kept * chosen", 6),
        ("200ms * 10 + 3s + 2000000us", 7),
        (".5e1 + 5.", 10),
        ("1 + (2 + (3 + (4 + acked)))", 12),
        ("min(cwnd, min(acked, 1)) + max(2 * 3, 1 + 1)", 7),
    ] {
        assert_eq!(window_after(&format!("cwnd = {expression}")), Ok(value), "{expression}");
    }
}

#[test]
fn conditions_choose() {
    for (condition, holds) in [
        ("cwnd == 10", true),
        ("cwnd != 10", false),
        ("cwnd < 10", false),
        ("cwnd <= 10", true),
        ("cwnd > 9.5", true),
        ("cwnd >= 10.5", false),
        ("limited", true),
        ("not limited", false),
        ("not not limited", true),
        ("slow_start and limited", true),
        ("limited and cwnd < 3", false),
        ("cwnd < 3 or limited", true),
        ("cwnd < 3 or cwnd < 4 or cwnd < 11", true),
        ("cwnd < 3 and limited or limited", true),
        ("cwnd < 3 and (limited or limited)", false),
        ("not (cwnd < 3 or cwnd > 20)", true),
        ("(cwnd + 1) * 2 == 22", true),
        ("limited and not (acked > 2 or recovering)", true),
        // What is decided already is not computed.
        ("cwnd < 3 and 1 / 0 > 1", false),
        ("limited or 1 / 0 > 1", true),
    ] {
        let text = format!("if {condition} {{ cwnd = 20 }} else {{ cwnd = 30 }}");
        assert_eq!(window_after(&text), Ok(if holds { 20 } else { 30 }), "{condition}");
    }
    let chain = "if cwnd < 5 { cwnd = 1 } else if cwnd < 11 { cwnd = 2 } else if limited { cwnd = 3 } else { cwnd = 4 }";
    assert_eq!(window_after(chain), Ok(2));
    assert_eq!(window_after(&chain.replace("11", "7")), Ok(3));
    assert_eq!(window_after("if not limited { cwnd = 1 }"), Ok(10));
}

#[test]
fn names_live_in_their_block() {
    assert_eq!(window_after("let a = 3 let b = a + 1 a = a * b cwnd = a"), Ok(12));
    assert_eq!(window_after("if limited { let a = 5 cwnd = a } let a = 6 cwnd = cwnd + a"), Ok(11));
    let outside = Program::parse(&on_ack("if limited { let a = 5 } cwnd = a")).unwrap_err();
    assert_eq!((outside.at.line, outside.value.as_str()), (4, "\"a\""));
    // A word that has been set is read as it was set, with its fraction.
    assert_eq!(window_after("cwnd = 7.75 cwnd = cwnd * 4"), Ok(31));
}

#[test]
fn state_lasts_and_every_connection_has_its_own() {
    let text = on_ack("kept = kept + acked cwnd = kept");
    let program = Arc::new(Program::parse(&text).unwrap());
    assert_eq!(program.states(), ["kept"]);
    assert_eq!(program.settings()[0].name, "chosen");
    let mut first = of(&program, &[]);
    let mut second = first.clone();
    let mut window = Window::new(10);
    for expected in [3, 5, 7] {
        let _ = first.cong_avoid(&view(), &mut window, 2);
        assert_eq!(window.cwnd, expected);
    }
    let _ = second.cong_avoid(&view(), &mut window, 2);
    assert_eq!(window.cwnd, 3);
    let mut steep = made_with(&on_ack("cwnd = chosen"), &[("chosen", 9.0)]);
    let _ = steep.cong_avoid(&view(), &mut window, 2);
    assert_eq!(window.cwnd, 9);
}

#[test]
fn the_window_keeps_its_fraction_until_the_endpoint_changes_it() {
    let mut algorithm = algorithm_of(&on_ack("cwnd = cwnd + 0.25"));
    let mut window = Window::new(10);
    let mut grow = |window: &mut Window| {
        let _ = algorithm.cong_avoid(&view(), window, 1);
        window.cwnd
    };
    let grown: Vec<u32> = (0..8).map(|_| grow(&mut window)).collect();
    assert_eq!(grown, [10, 10, 10, 11, 11, 11, 11, 12]);
    grow(&mut window);
    window.cwnd = 5;
    let grown: Vec<u32> = (0..4).map(|_| grow(&mut window)).collect();
    assert_eq!(grown, [5, 5, 5, 6]);
}

#[test]
fn words_are_kept_in_their_bounds() {
    assert_eq!(window_after("cwnd = 0.3"), Ok(1));
    assert_eq!(window_after("cwnd = 1e300"), Ok(u32::MAX));
    let mut algorithm = algorithm_of(&on_ack("ssthresh = 1 count = 1e12"));
    let mut window = Window::new(10);
    let _ = algorithm.cong_avoid(&view(), &mut window, 1);
    assert_eq!((window.ssthresh, window.cwnd_cnt), (2, Window::INFINITE));
    let mut algorithm = algorithm_of(&on_ack("ssthresh = 1e12 cwnd = 99"));
    window.clamp = 40;
    let _ = algorithm.cong_avoid(&view(), &mut window, 1);
    assert_eq!((window.ssthresh, window.cwnd), (Window::INFINITE, 40));
}

#[test]
fn arithmetic_that_fails_is_named_and_changes_nothing() {
    for (statement, column, gave) in [
        ("cwnd = 1 / (acked - 2)", 10, f64::INFINITY),
        ("cwnd = 3 + sqrt(1 - acked)", 12, f64::NAN),
        ("let a = log(acked - 2)", 9, f64::NEG_INFINITY),
        ("kept = exp(1000)", 8, f64::INFINITY),
        ("kept = pow(10, 400)", 8, f64::INFINITY),
        ("if 0 / (acked - 2) < 1 { cwnd = 1 }", 6, f64::NAN),
        ("cwnd = min(1, 0 / (acked - 2))", 17, f64::NAN),
        ("cwnd = acked - 3", 1, -1.0),
        ("ssthresh = -2", 1, -2.0),
    ] {
        let mut algorithm = algorithm_of(&on_ack(&format!("kept = 7\n{statement} cwnd = 33")));
        let mut window = Window::new(10);
        let _ = algorithm.cong_avoid(&view(), &mut window, 2);
        let fault = algorithm.fault().unwrap_or_else(|| panic!("{statement}: no fault"));
        assert_eq!((fault.at, fault.acks), (Position { line: 5, column }, 1), "{statement}");
        assert!(fault.gave.to_bits() == gave.to_bits() || fault.gave.is_nan() && gave.is_nan());
        // From then on it does nothing.
        let _ = algorithm.cong_avoid(&view(), &mut window, 1);
        assert_eq!((window.cwnd, algorithm.ssthresh(&view(), &mut window)), (10, Window::INFINITE));
    }
}

/// Hooks that set the threshold to a number of their own.
const HOOKED: &str = "
    on start { ssthresh = 100 }
    on ack { cwnd = cwnd + acked }
    on round { ssthresh = ssthresh + 1000 }
    on loss { ssthresh = 300 }
    on timeout { ssthresh = 400 }
    on idle { ssthresh = 500 }
";

#[test]
fn hooks_are_called_when_docs_program_md_says() {
    let mut algorithm = algorithm_of(HOOKED);
    let mut window = Window::new(10);
    let mut view = View { snd_una: 1, snd_nxt: 1, ..view() };
    algorithm.init(&view, &mut window);
    assert_eq!(window.ssthresh, 100);
    algorithm.cwnd_event(&view, &mut window, Event::TxStart);
    assert_eq!(window.ssthresh, 100, "the first packets follow no idle time");
    // Ten packets of a thousand bytes; the first ACK ends the round of the handshake.
    view.snd_nxt = 10_001;
    let mut acked = |una: u64, nxt: u64, window: &mut Window, algorithm: &mut Algorithm| {
        (view.snd_una, view.snd_nxt) = (una, nxt);
        let _ = algorithm.cong_avoid(&view, window, 1);
        window.ssthresh
    };
    assert_eq!(acked(1_001, 10_001, &mut window, &mut algorithm), 1_100);
    assert_eq!(acked(10_001, 12_001, &mut window, &mut algorithm), 1_100);
    assert_eq!(acked(11_001, 22_001, &mut window, &mut algorithm), 2_100);
    assert_eq!(acked(22_001, 23_001, &mut window, &mut algorithm), 2_100);
    assert_eq!(acked(22_002, 23_001, &mut window, &mut algorithm), 3_100);
    assert_eq!(window.cwnd, 15);
    assert_eq!(algorithm.ssthresh(&view, &mut window), 300);
    algorithm.set_state(&view, &mut window, CaState::Recovery);
    assert_eq!(window.ssthresh, 300);
    algorithm.set_state(&view, &mut window, CaState::Loss);
    assert_eq!(window.ssthresh, 400);
    algorithm.cwnd_event(&view, &mut window, Event::TxStart);
    assert_eq!(window.ssthresh, 500);
    assert!(!algorithm.has_cong_control() && !algorithm.about().needs.pacing);
}

#[test]
fn words_tell_what_the_endpoint_shows() {
    let text = "
        state seen = 0
        on control {
            if rtt == 30ms and srtt == 40ms and min_rtt == 20ms { seen = seen + 1 }
            if now == 5s and mss == 1448 and in_flight == 8 { seen = seen + 10 }
            if delivered == 77 and marked == 3 and lost == 2 { seen = seen + 100 }
            if delivery_rate == 500 and app_limited and recovering { seen = seen + 1000 }
            if acked == 4 and count == 6 and ssthresh == 50 { seen = seen + 10000 }
            cwnd = seen
            pacing = 100
        }";
    let mut algorithm = algorithm_of(text);
    let view = View {
        now: dragstrip_units::Instant::from_nanos(5_000_000_000),
        srtt_us_x8: 8 * 40_000,
        min_rtt_us: 20_000,
        packets_out: 8,
        delivered: 77,
        delivered_ce: 3,
        state: CaState::Recovery,
        ..view()
    };
    let mut window = Window { cwnd_cnt: 6, ssthresh: 50, ..Window::new(10) };
    algorithm.acked(&view, &mut window, &ack(1, 30_000));
    let sample = RateSample {
        delivered: Some(10),
        interval_us: 20_000,
        losses: 2,
        acked_sacked: 4,
        is_app_limited: true,
        ..RateSample::default()
    };
    let _ = algorithm.cong_control(&view, &mut window, &sample);
    assert_eq!((window.cwnd, window.pacing_rate), (11_111, 144_800));
    assert!(algorithm.has_cong_control() && algorithm.about().needs.pacing);
    assert_eq!(algorithm.phase(&view, &window), "control");
}

/// A text, where it is wrong, what stands there, and what is expected or a part of it.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("", "1:1", "the end of the text", "on ack"),
    ("on ack { }", "1:11", "the end of the text", "on loss"),
    ("on ack { } on loss { }", "1:15", "\"loss\"", "ssthresh = ..."),
    ("onn ack { }", "1:1", "\"onn\"", "did you mean \"on\"?"),
    ("on acks { }", "1:4", "\"acks\"", "did you mean \"ack\"?"),
    ("on { }", "1:4", "\"{\"", "one of start, ack, control, round, loss, timeout, idle"),
    ("on ack { } on ack { }", "1:15", "\"ack\"", "every hook once"),
    ("on ack { } on control { }", "1:15", "\"control\"", "either `on ack` or `on control`"),
    ("on ack cwnd = 1", "1:8", "\"cwnd\"", "{"),
    ("on ack { cwnd = 1", "1:18", "the end of the text", "let, if, a name to set, or }"),
    ("on ack { cwnd == 1 }", "1:15", "\"==\"", "="),
    ("on ack { cwnd = }", "1:17", "\"}\"", "a number, a name or ("),
    ("on ack { cwnd = 1 + }", "1:21", "\"}\"", "a number, a name or ("),
    ("on ack { cwnd = (1 + 2 }", "1:24", "\"}\"", ")"),
    ("on ack { cwnd = cwn }", "1:17", "\"cwn\"", "did you mean \"cwnd\"?"),
    ("on ack { cwnd = whatever }", "1:17", "\"whatever\"", "a name that has been given"),
    ("on ack { cwmd = 1 }", "1:10", "\"cwmd\"", "did you mean \"cwnd\"?"),
    ("on ack { x = 1 }", "1:10", "\"x\"", "a new name begins with let"),
    ("on ack { rtt = 1 }", "1:10", "\"rtt\"", "rtt is only read"),
    ("on ack { cwnd = limited }", "1:17", "a condition", "a number"),
    ("on ack { cwnd = cwnd < 3 }", "1:22", "\"<\"", "let, if, a name to set, or }"),
    ("on ack { cwnd = (cwnd < 3) }", "1:17", "a condition", "a number"),
    ("on ack { cwnd = 1 + limited }", "1:21", "a condition", "a number"),
    ("on ack { cwnd = -limited }", "1:18", "a condition", "a number"),
    ("on ack { if cwnd { } }", "1:13", "a number", "a condition, such as cwnd < ssthresh"),
    ("on ack { if not cwnd { } }", "1:17", "a number", "a condition"),
    ("on ack { if limited and cwnd { } }", "1:25", "a number", "a condition"),
    ("on ack { if cwnd and limited { } }", "1:13", "a number", "a condition"),
    ("on ack { if cwnd = 3 { } }", "1:18", "\"=\"", "== to compare"),
    ("on ack { if cwnd < 3 < 4 { } }", "1:22", "\"<\"", "{"),
    ("on ack { if limited == 1 { } }", "1:13", "a condition", "a number"),
    ("on ack { let cwnd = 1 }", "1:14", "\"cwnd\"", "a name that nothing has yet"),
    ("on ack { let min = 1 }", "1:14", "\"min\"", "a name that nothing has yet"),
    ("on ack { let if = 1 }", "1:14", "\"if\"", "a name that nothing has yet"),
    ("on ack { let a = 1 let a = 2 }", "1:24", "\"a\"", "a name that nothing has yet"),
    ("on ack { let a = a }", "1:18", "\"a\"", "a name that has been given"),
    ("state a = 1 param a = 2", "1:19", "\"a\"", "a name that nothing has yet"),
    ("state a = b", "1:11", "\"b\"", "a number"),
    ("state a 1", "1:9", "\"1\"", "="),
    ("param p = 1 on ack { p = 2 }", "1:22", "\"p\"", "a param stays as it is"),
    ("on ack { cwnd = min(1) }", "1:22", "\")\"", "min(a, b)"),
    ("on ack { cwnd = sqrt(1, 2) }", "1:23", "\",\"", "sqrt(a)"),
    ("on ack { cwnd = sqrt }", "1:22", "\"}\"", "("),
    ("on ack { cwnd = flor(1) }", "1:17", "\"flor\"", "did you mean \"floor\"?"),
    ("on ack { cwnd = 10packets }", "1:17", "\"10packets\"", "200ms (s, ms, us)"),
    ("on ack { cwnd = 1.2.3 }", "1:17", "\"1.2.3\"", "a number such as"),
    ("on ack { cwnd = 1e999 }", "1:17", "\"1e999\"", "a number such as"),
    ("on ack { cwnd = . }", "1:17", "\".\"", "a number such as"),
    ("on ack { cwnd = 2 ^ 3 }", "1:19", "\"^\"", "pow(a, b)"),
    ("on ack { cwnd = 2; }", "1:18", "\";\"", "nothing: a statement ends"),
    ("on ack { if limited && limited { } }", "1:21", "\"&\"", "and, or, not"),
    ("on ack { if !limited { } }", "1:13", "\"!\"", "and, or, not"),
    ("on ack { } // Reno", "1:12", "\"/\"", "on, state or param"),
    ("# größer\n\ton ack { é }", "2:11", "\"é\"", "a letter of the language"),
    (
        "on ack { cwnd = 1 } on loss { cwnd = 1 ssthresh = 2 }",
        "1:31",
        "\"cwnd\"",
        "takes the window down",
    ),
    (
        "on ack { pacing = 1 } on loss { ssthresh = 2 }",
        "1:10",
        "\"pacing\"",
        "only that has pacing",
    ),
    (
        "on ack { cwnd = delivery_rate } on loss { ssthresh = 2 }",
        "1:17",
        "\"delivery_rate\"",
        "`on control`",
    ),
    ("on ack { } }", "1:12", "\"}\"", "on, state or param"),
    ("on ack { } else { }", "1:12", "\"else\"", "on, state or param"),
    ("on ack { else { } }", "1:10", "\"else\"", "let, if, a name to set, or }"),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, at, value, expected) in WRONG {
        let misread = Program::parse(text).expect_err(text);
        assert_eq!(
            (misread.at.to_string().as_str(), misread.value.as_str()),
            (*at, *value),
            "{text}"
        );
        assert!(misread.expected.contains(expected), "{text}: {misread}");
    }
}

#[test]
fn every_bound_holds() {
    let error = |text: &str| Program::parse(text).map(|_| ()).unwrap_err().expected;
    let deep =
        |depth: usize| on_ack(&format!("cwnd = {}1{}", "(".repeat(depth), ")".repeat(depth)));
    assert!(Program::parse(&deep(31)).is_ok());
    for text in [
        deep(32),
        deep(5_000),
        on_ack(&format!("cwnd = {}1", "-".repeat(5_000))),
        on_ack(&format!("if {} limited {{ }}", "not ".repeat(3_000))),
        on_ack(&"if limited { ".repeat(1_000)),
        on_ack(&format!("cwnd = {}", "min(1, ".repeat(2_000))),
    ] {
        assert_eq!(error(&text), "at most 32 brackets and blocks within each other");
    }
    // An `else if` is no deeper than the one before.
    let chain = format!("if limited {{ }}{}", " else if limited { }".repeat(100));
    assert!(Program::parse(&on_ack(&chain)).is_ok());
    let sums = |count: usize| on_ack(&format!("kept = 1{}", " + 1".repeat(count)));
    assert!(Program::parse(&sums(256)).is_ok());
    assert_eq!(error(&sums(257)), "at most 256 operations in a hook");
    let names: String = (0..300).map(|n| format!("state s{n} = {n}\n")).collect();
    assert!(error(&names).starts_with("fewer names and numbers"));
    // Numbers of a later hook find what an earlier one holds.
    let lets: String = (0..150).map(|n| format!("let s{n} = acked\n")).collect();
    let sum: String = (0..120).map(|n| format!("kept = {n}.5\n")).collect();
    let text = format!("{}on round {{ {sum} }}", on_ack(&lets));
    assert!(error(&text).starts_with("fewer names and numbers"));
    assert_eq!(error(&"#".repeat(TEXT_MAX + 1)), format!("at most {TEXT_MAX}"));
    assert_eq!(error(&format!("state {} = 1", "x".repeat(33))), "at most 32 letters");
}

#[test]
fn names_of_programs_fit_into_words_of_the_command_line() {
    for name in ["my-reno", "a", "Vegas_2", "x".repeat(32).as_str()] {
        assert!(is_name(name), "{name}");
    }
    for name in
        ["", "2fast", "a:b", "a*2", "a@1ms", "a,b", "a b", "ä", "-a", "x".repeat(33).as_str()]
    {
        assert!(!is_name(name), "{name}");
    }
}

/// docs/how-to/program.md has every word, hook and function.
#[test]
fn the_page_about_the_language_is_complete() {
    let page = include_str!("../../../../docs/how-to/program.md");
    let rows =
        WORDS.iter().map(|row| format!("| `{}` | {} | {} |", row.name, row.unit, row.meaning));
    let hooks = HOOKS.iter().map(|row| format!("| `on {}` | {} |", row.name, row.meaning));
    for row in rows.chain(hooks) {
        assert!(page.contains(&row), "docs/how-to/program.md lacks: {row}");
    }
    for (name, _, _) in code::FUNCTIONS {
        assert!(page.contains(&format!("`{name}`")), "docs/how-to/program.md lacks {name}");
    }
}
