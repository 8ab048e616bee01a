//! Words that may stand behind the matches of any filter: a class, a policer, an action (m_police.c of iproute2).

use super::types::{ClassId, Exceeds, PolicerSpec};
use super::words::{Id, following, id};
use crate::disciplines::QdiscSpec;
use crate::tc::{Words, unknown, unreadable, wrong};
use dragstrip_units::Problem;

/// Effects of a filter.
#[derive(Default)]
pub(super) struct Does {
    pub(super) class: Option<ClassId>,
    pub(super) drop: bool,
    pub(super) police: Option<PolicerSpec>,
}

/// Words behind the matches: the class, actions, a policer.
pub(super) fn rest(words: &mut Words<'_>, major: u16, accepted: &[&str]) -> Result<Does, Problem> {
    let mut does = Does::default();
    while let Some(word) = words.next() {
        if !behind(word, words, major, &mut does)? {
            let mut list = vec!["classid", "police", "action"];
            list.extend(accepted);
            return Err(unknown(word, &list, &[]));
        }
    }
    Ok(does)
}

/// Takes a word that may stand behind any match; false: it is none.
pub(super) fn behind(
    word: &str,
    words: &mut Words<'_>,
    major: u16,
    does: &mut Does,
) -> Result<bool, Problem> {
    match word {
        "classid" | "flowid" => {
            let Id { major: given, minor } = words.value(word, id)?;
            does.class = Some(ClassId { major: given, minor });
        }
        "police" => does.police = Some(police(words)?),
        "action" => match following(words, word)? {
            "police" => does.police = Some(police(words)?),
            "drop" | "shot" => does.drop = true,
            "ok" | "pass" => {}
            "skbedit" => {
                let field = following(words, "skbedit")?;
                if field != "priority" {
                    return Err(wrong(
                        format!("\"skbedit {field}\""),
                        "skbedit priority: the simulator does not model another",
                    ));
                }
                let Id { major: given, minor } = words.value(field, id)?;
                if given != major {
                    return Err(wrong(
                        format!("\"priority {given:x}:{minor:x}\""),
                        format!("a class of {major:x}:"),
                    ));
                }
                does.class = Some(ClassId { major: given, minor });
            }
            other => {
                return Err(unknown(
                    other,
                    &["police", "drop", "ok", "pass", "skbedit"],
                    &[
                        "mirred", "pedit", "connmark", "ctinfo", "gact", "xt", "csum", "continue",
                        "pipe",
                    ],
                ));
            }
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// The words of `police`, up to those that are the filter's again.
fn police(words: &mut Words<'_>) -> Result<PolicerSpec, Problem> {
    let (mut kept, mut exceeds) = (vec!["police".to_owned()], Exceeds::Ok);
    let verdict = |text: &str| match text {
        "drop" | "shot" => Ok(Exceeds::Drop),
        "continue" | "unspec" => Ok(Exceeds::Continue),
        "ok" | "pass" => Ok(Exceeds::Ok),
        _ => Err(unreadable(text, "drop, continue or ok: the simulator does not model another")),
    };
    while let Some(word) = words.peek() {
        if ["classid", "flowid", "action", "match"].contains(&word) {
            break;
        }
        let _ = words.next();
        match word {
            "drop" | "continue" | "ok" | "pass" => {
                exceeds = verdict(word).unwrap_or(Exceeds::Drop);
            }
            // What conforms goes to the class of the filter.
            "conform-exceed" => {
                exceeds = words.value(word, |text| {
                    let (exceed, conform) = text.split_once('/').unwrap_or((text, "ok"));
                    match conform {
                        "ok" | "pass" => verdict(exceed),
                        _ => Err(unreadable(text, "drop/ok: what conforms passes")),
                    }
                })?;
            }
            "leaf" => {
                return Err(unknown(word, &["rate", "burst", "mtu", "peakrate", "drop"], &[]));
            }
            _ => kept.push(word.to_owned()),
        }
    }
    let QdiscSpec::Police(spec) = QdiscSpec::parse(&kept.join(" "))? else {
        unreachable!("the words begin with police")
    };
    Ok(PolicerSpec {
        rate_bps: spec.rate_bps,
        burst_bytes: spec.burst_bytes,
        mtu_bytes: spec.mtu_bytes,
        peakrate_bps: spec.peakrate_bps,
        exceeds,
    })
}
