//! A filter as a command adds it, before hash tables are resolved.

use super::types::{ClassId, FilterSpec, Matching, PolicerSpec};
use super::u32_words::U32;
use super::words::Id;

/// A filter as a command adds it, or a table of u32.
#[derive(Clone, Debug)]
pub(super) struct FilterWords {
    pub(super) parent: Id,
    pub(super) priority: u16,
    pub(super) content: Content,
    pub(super) class: Option<ClassId>,
    pub(super) drop: bool,
    pub(super) police: Option<PolicerSpec>,
}

/// The condition of a filter.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// As the packets meet it.
    Plain(Matching),
    /// In a table, or leading to one.
    U32(U32),
}

impl FilterWords {
    pub(super) fn spec_of(&self, matching: Matching) -> FilterSpec {
        let Self { parent, priority, content: _, class, drop, police } = self;
        FilterSpec {
            parent: parent.minor,
            priority: *priority,
            matching,
            class: *class,
            drop: *drop,
            police: *police,
        }
    }

    /// Place among those of its priority.
    pub(super) const fn order(&self) -> u16 {
        match &self.content {
            Content::U32(U32::Node(node)) => node.order,
            Content::U32(U32::Table { .. } | U32::Nothing) | Content::Plain(_) => 0,
        }
    }
}
