//! Hash tables of u32, resolved (`u32_classify`, net/sched/cls_u32.c).
//!
//! A filter with a link leads to one bucket of another table; the word under its `hashkey` chooses which. A filter in that
//! bucket is therefore asked of the packets that fulfil the link's keys and whose word has the bucket's number, which is one
//! more key. So each filter of a linked table becomes a plain one with all these keys, in the place of the link:
//!
//! ```text
//! match A link 2: hashkey mask 0xff at 16        match A, octet 19 = 1, B  ──▶ class of B
//! ht 2:1: match B classid ...            ──▶     match A, octet 19 = 7, C  ──▶ class of C
//! ht 2:7: match C classid ...                    (the link's own class, if it has one)
//! ```
//!
//! A packet that no filter of the bucket takes goes on behind the link, as in the kernel. All packets have a header of 20 bytes.

use super::check::FILTERS_MAX;
use super::filter::{MODELLED, NEXT_HEADER, NOTHING_ELSE, comparable};
use super::filter_content::{Content, FilterWords};
use super::types::{Condition, Field, FilterSpec, Key, Matching};
use super::u32_words::{Node, NodeKey, Offset, U32};
use super::words::Id;
use crate::tc::wrong;
use dragstrip_units::Problem;

/// Tables that lead to one another at most (`TC_U32_MAXDEPTH`).
const DEPTH_MAX: usize = 8;
/// Filters that one link is followed to at most.
const STEPS_MAX: usize = 2 * FILTERS_MAX;
/// Octets 0 and 1 of every packet's IP header, the traffic class aside, where `offset at 0` reads the header's length.
const HEADER_WORDS: u16 = 0x4500;

/// Position at which a table's filters begin to count, and that of the next header.
#[derive(Clone, Copy)]
struct Base {
    header: u16,
    next: u16,
}

/// A filter of a place with what it meets in linked tables.
struct Walk<'a> {
    all: &'a [FilterWords],
    parent: Id,
    filters: Vec<FilterSpec>,
    /// Filters that were looked at.
    steps: usize,
}

/// The filters that packets meet in the place of one; `all` has the tables.
pub(super) fn specs(filter: &FilterWords, all: &[FilterWords]) -> Result<Vec<FilterSpec>, Problem> {
    match &filter.content {
        Content::Plain(matching) => Ok(vec![filter.spec_of(matching.clone())]),
        Content::U32(U32::Node(node)) if node.place.is_none() => resolved(filter, node, all),
        Content::U32(_) => Ok(Vec::new()),
    }
}

/// The filters that one of them stands for, those of the tables that it leads to included.
///
/// # Errors
/// A table that no command adds, tables that lead in a circle, and a key of what is not modelled.
pub(super) fn resolved(
    filter: &FilterWords,
    node: &Node,
    all: &[FilterWords],
) -> Result<Vec<FilterSpec>, Problem> {
    let mut walk = Walk { all, parent: filter.parent, filters: Vec::new(), steps: 0 };
    walk.node(filter, node, &Taken::default(), Base { header: 0, next: NEXT_HEADER }, 0)?;
    Ok(walk.filters)
}

/// The refusal of a filter in a table that does not exist.
pub(super) fn expect_table(
    filters: &[FilterWords],
    filter: &FilterWords,
    node: &Node,
) -> Result<(), Problem> {
    for (word, number, bucket) in [
        ("ht", node.place.map(|(table, _)| table), node.place.map_or(0, |(_, bucket)| bucket)),
        ("link", node.link, 0),
    ] {
        let Some(number) = number else { continue };
        let Some(divisor) = divisor_of(filters, filter.parent, number) else {
            let expected =
                format!("a table that a command before adds: handle {number:x}: u32 divisor 256");
            return Err(wrong(format!("\"{word} {number:x}:\""), expected));
        };
        if u32::from(bucket) >= divisor {
            let expected =
                format!("a bucket below {divisor:x}, hexadecimal: the table has {divisor}");
            return Err(wrong(format!("\"{word} {number:x}:{bucket:x}:\""), expected));
        }
    }
    Ok(())
}

fn divisor_of(filters: &[FilterWords], parent: Id, table: u16) -> Option<u32> {
    filters.iter().find_map(|filter| match filter.content {
        Content::U32(U32::Table { number, divisor })
            if number == table && filter.parent == parent =>
        {
            Some(divisor)
        }
        Content::U32(_) | Content::Plain(_) => None,
    })
}

/// Conditions that packets have fulfilled on their way to a table.
#[derive(Clone, Default)]
struct Taken {
    keys: Vec<Key>,
    marks: Vec<(u32, u32)>,
}

impl Walk<'_> {
    fn node(
        &mut self,
        filter: &FilterWords,
        node: &Node,
        before: &Taken,
        base: Base,
        depth: usize,
    ) -> Result<(), Problem> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let expected = format!("tables that come to at most {FILTERS_MAX} filters");
            return Err(wrong("more filters", expected));
        }
        let mut taken = before.clone();
        for key in &node.keys {
            taken.keys.extend(placed(key, base)?);
        }
        taken.marks.extend(node.mark);
        if let Some(table) = node.link {
            self.table(table, node, &taken, base, depth + 1)?;
        }
        let does = filter.class.is_some() || filter.drop || filter.police.is_some();
        if node.link.is_none() || does {
            if depth > 0 && filter.police.is_some() {
                return Err(wrong(
                    "\"police\" in a table",
                    "in a filter without \"ht\": how links share one is not modelled",
                ));
            }
            self.filters.push(filter.spec_of(matching(taken)));
        }
        Ok(())
    }

    /// The filters of a linked table, bucket by bucket.
    fn table(
        &mut self,
        table: u16,
        link: &Node,
        taken: &Taken,
        base: Base,
        depth: usize,
    ) -> Result<(), Problem> {
        if depth > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} tables, none of which leads to itself");
            return Err(wrong(format!("\"link {table:x}:\""), expected));
        }
        let (all, parent) = (self.all, self.parent);
        let divisor = divisor_of(all, parent, table).unwrap_or(1);
        let mut members: Vec<(&FilterWords, &Node, u16)> = all
            .iter()
            .filter(|filter| filter.parent == parent)
            .filter_map(|filter| match &filter.content {
                Content::U32(U32::Node(node)) => {
                    let (number, bucket) = node.place?;
                    (number == table).then_some((filter, node, bucket))
                }
                Content::U32(U32::Table { .. } | U32::Nothing) | Content::Plain(_) => None,
            })
            .collect();
        members.sort_by_key(|(_, node, bucket)| (*bucket, node.order));
        let inner = behind(link.offset, base);
        for (filter, node, bucket) in members {
            let Some(hash) = chosen(link.hash, divisor, bucket) else { continue };
            let mut taken = taken.clone();
            if hash.mask != 0 {
                taken.keys.push(comparable_at(hash, base.header, "hashkey")?);
            }
            self.node(filter, node, &taken, inner, depth)?;
        }
        Ok(())
    }
}

/// The key of the packets that a link leads to this bucket (`u32_hash_fold`); none: it leads none there.
fn chosen(hash: Option<(u32, u16)>, divisor: u32, bucket: u16) -> Option<Key> {
    let (mask, offset) = hash.unwrap_or((0, 0));
    let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
    let reached = (mask >> shift) & (divisor - 1);
    let bucket = u32::from(bucket);
    (bucket & !reached == 0).then(|| Key { offset, value: bucket << shift, mask: reached << shift })
}

/// Positions in a linked table.
fn behind(offset: Option<Offset>, base: Base) -> Base {
    let Some(Offset { variable, plus, eats }) = offset else { return base };
    let read = variable.map_or(0, |(at, mask, shift)| {
        let words = if base.header + at == 0 { HEADER_WORDS } else { 0 };
        (words & mask) >> shift
    });
    let next = (plus + read + 3) & !3;
    if eats { Base { header: base.header + next, next: 0 } } else { Base { next, ..base } }
}

/// A key from the beginning of IP's header; none: every packet fulfils it.
fn placed(key: &NodeKey, base: Base) -> Result<Option<Key>, Problem> {
    if key.key.mask == 0 {
        return Ok(None);
    }
    let at = if key.behind_header { base.header + base.next } else { base.header };
    comparable_at(key.key, at, &format!("match {}", key.quoted)).map(Some)
}

/// Refuses what the simulation does not know of a packet.
fn comparable_at(key: Key, base: u16, quoted: &str) -> Result<Key, Problem> {
    let key = Key { offset: base.saturating_add(key.offset), ..key };
    if key.mask & !comparable(key.offset).unwrap_or(0) == 0 {
        return Ok(key);
    }
    Err(wrong(format!("\"{quoted}\""), format!("{MODELLED}: {NOTHING_ELSE}")))
}

/// All of them, as a filter has it.
fn matching(taken: Taken) -> Matching {
    let Taken { keys, marks } = taken;
    if marks.is_empty() {
        return if keys.is_empty() { Matching::Everything {} } else { Matching::U32 { keys } };
    }
    let marks =
        marks.into_iter().map(|(value, mask)| Condition::equal(Field::Mark {}, mask, value));
    let octets = |key: Key| {
        Condition::equal(Field::Octets { offset: key.offset, width: 32 }, key.mask, key.value)
    };
    Matching::Basic { condition: Condition::all(marks.chain(keys.into_iter().map(octets))) }
}
