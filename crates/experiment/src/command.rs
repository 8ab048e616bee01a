//! A comparison's options in the words of a command line, and which of them a field of its experiment comes from.

use crate::compare::CompareForm;

/// Field of the experiment → field of the form.
const FIELDS: &[(&str, &str)] = &[
    ("ALGORITHM", "algorithms"),
    ("path.preset", "path"),
    ("path.rate", "rate"),
    ("path.medium", "medium"),
    ("media.recorded.file", "trace"),
    ("media.recorded-up.file", "up_trace"),
    ("path.up_medium", "up_medium"),
    ("workload", "workload"),
    ("stagger", "stagger"),
    ("path.rtt", "rtt"),
    ("path.queue", "queue"),
    ("path.loss", "loss"),
    ("path.jitter", "jitter"),
    ("path.link", "link"),
    ("path.up_rate", "up_rate"),
    ("path.up_queue", "up_queue"),
    ("duration", "duration"),
    ("seed", "seed"),
    ("repeat", "repeat"),
    ("changes", "change"),
    ("hosts.*.gso", "gso"),
    ("engine", "engine"),
    ("load", "load"),
    ("programs", "programs"),
];

/// The option behind a field of the experiment that a comparison means: [`CompareForm`]'s field, or `engine` or `load`,
/// which the command line adds. None if the field is nobody's.
#[must_use]
pub fn form_field(field: &str) -> Option<&'static str> {
    if let Some((_, option)) = FIELDS.iter().find(|(known, _)| *known == field) {
        return Some(option);
    }
    if field.starts_with("flows[") {
        return Some(if field.ends_with("count") { "flows" } else { "algorithms" });
    }
    if field.contains(".sysctl") {
        return Some("sysctl");
    }
    let within = FIELDS.iter().filter(|(known, _)| field.starts_with(known));
    within.max_by_key(|(known, _)| known.len()).map(|(_, option)| *option)
}

/// The command line that says the same. What is as it is by default is left out, but not the duration.
#[must_use]
pub fn command_line(form: &CompareForm) -> String {
    let CompareForm {
        algorithms,
        path,
        rate,
        medium,
        trace,
        rtt,
        queue,
        duration,
        workload,
        flows,
        both_ways,
        stagger,
        loss,
        jitter,
        up_rate,
        up_medium,
        up_trace,
        up_queue,
        link,
        ecn,
        accurate_ecn,
        sysctl,
        gso,
        seed,
        repeat,
        together,
        programs,
        change,
    } = form;
    let mut words = vec!["dragstrip".to_owned(), "compare".to_owned()];
    let mut say = |option: &str, value: &str| {
        words.extend([option.to_owned(), quoted(value)]);
    };
    let number = |value: i64| (value != 1).then(|| value.to_string());
    let other = |value: &str, default: &str| (value != default).then(|| value.to_owned());
    for (option, value) in [
        ("--path", path.clone()),
        ("--rate", rate.clone()),
        ("--medium", medium.clone()),
        ("--trace", trace.clone()),
        ("--rtt", rtt.clone()),
        ("--queue", queue.clone()),
        ("--loss", loss.clone()),
        ("--jitter", jitter.clone()),
        ("--up-rate", up_rate.clone()),
        ("--up-medium", up_medium.clone()),
        ("--up-trace", up_trace.clone()),
        ("--up-queue", up_queue.clone()),
        ("--link", link.clone()),
        ("--workload", other(workload, "bulk")),
        ("--duration", Some(duration.clone())),
        ("--flows", number(*flows)),
        ("--stagger", stagger.clone()),
        ("--gso", other(gso, "auto")),
        ("--seed", number(*seed)),
        ("--repeat", number(*repeat)),
    ] {
        if let Some(value) = value {
            say(option, &value);
        }
    }
    for text in change {
        say("--change", text);
    }
    for (key, value) in sysctl {
        say("--sysctl", &format!("{key}={value}"));
    }
    for name in programs.keys() {
        say("--program", &format!("{name}.cc"));
    }
    for (option, given) in [
        ("--both-ways", both_ways),
        ("--ecn", ecn),
        ("--accurate-ecn", accurate_ecn),
        ("--together", together),
    ] {
        if *given {
            words.push(option.to_owned());
        }
    }
    if algorithms.iter().any(|name| name.starts_with('-')) {
        words.push("--".to_owned());
    }
    words.extend(algorithms.iter().map(|name| quoted(name)));
    words.join(" ")
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_says_what_differs_from_the_defaults() {
        let form = r#"{"algorithms": ["cubic", "bbr*4@80ms"], "rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb",
            "duration": "30s", "together": true, "change": ["9s rate=2mbit"], "seed": 7, "ecn": true, "sysctl": {"net.ipv4.tcp_rmem": "1 2 3"}}"#;
        let form = CompareForm::from_json(form).unwrap();
        assert_eq!(
            command_line(&form),
            "dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s --seed 7 \
             --change '9s rate=2mbit' --sysctl 'net.ipv4.tcp_rmem=1 2 3' --ecn --together cubic 'bbr*4@80ms'"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }

    #[test]
    fn a_field_is_its_options() {
        for (field, option) in [
            ("path.rate", Some("rate")),
            ("path.queue.limit", Some("queue")),
            ("media.recorded-up.file", Some("up_trace")),
            ("flows[0].cc", Some("algorithms")),
            ("flows[0].count", Some("flows")),
            ("hosts.*.sysctl.net.x", Some("sysctl")),
            ("ALGORITHM", Some("algorithms")),
            ("probes[0].interval", None),
        ] {
            assert_eq!(form_field(field), option, "{field}");
        }
    }
}
