//! The tables of all parts as those of one run.

use dragstrip_recording::{Column, Data, Recording, Table};

/// The rows of all parts in order of time, rows of one instant in the order of flows, links or probes. A single part
/// is sorted likewise.
pub(crate) fn united(parts: Vec<Recording>) -> Recording {
    let mut by_part = parts.into_iter();
    let mut tables = by_part.next().unwrap_or_default().tables;
    for part in by_part {
        for (table, more) in tables.iter_mut().zip(part.tables) {
            for (column, more) in table.columns.iter_mut().zip(more.columns) {
                append(&mut column.data, more.data);
            }
        }
    }
    for table in &mut tables {
        if let Some(order) = order(table) {
            for column in &mut table.columns {
                column.data = picked(&column.data, &order);
            }
        }
        for column in &mut table.columns {
            // Words of the others are numbered before the run.
            if matches!(
                (table.name, column.name),
                ("samples", "state" | "limit") | ("cc_state", "name")
            ) {
                renumber(&mut column.data);
            }
        }
    }
    Recording { tables }
}

fn append(data: &mut Data, more: Data) {
    match (data, more) {
        (Data::Int(values), Data::Int(more)) => values.to_mut().extend(more.into_vec()),
        (Data::Bool(values), Data::Bool(more)) => values.extend(more),
        (Data::Float(values), Data::Float(more)) => values.extend(more),
        (Data::Text { names, index }, Data::Text { names: others, index: more }) => {
            let numbers: Vec<i32> = others
                .into_iter()
                .map(|name| {
                    let position = names.iter().position(|position| *position == name);
                    position.unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    }) as i32
                })
                .collect();
            index.extend(
                more.iter().map(|&word| usize::try_from(word).map_or(word, |at| numbers[at])),
            );
        }
        (Data::Int(_) | Data::Bool(_) | Data::Float(_) | Data::Text { .. }, _) => {
            unreachable!("parts have the same columns")
        }
    }
}

/// The order of a table's rows by time and by what they are of; `None` where they are in it.
fn order(table: &Table) -> Option<Vec<usize>> {
    let column = |name: &str| table.columns.iter().find(|column| column.name == name);
    let Some(Column { data: Data::Int(times), .. }) = column("time_ns") else { return None };
    let of = ["flow", "link", "probe"].into_iter().find_map(column)?;
    let key = |row: usize| {
        let of = match &of.data {
            Data::Int(values) => values[row],
            Data::Text { index, .. } => i64::from(index[row]),
            Data::Bool(_) | Data::Float(_) => 0,
        };
        (times[row], of)
    };
    if (1..times.len()).all(|row| key(row - 1) <= key(row)) {
        return None;
    }
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&row| key(row)); // stable: rows of one flow at one instant stay as they were
    Some(order)
}

fn picked(data: &Data, order: &[usize]) -> Data {
    match data {
        Data::Int(values) => Data::Int(order.iter().map(|&row| values[row]).collect()),
        Data::Bool(values) => Data::Bool(order.iter().map(|&row| values[row]).collect()),
        Data::Float(values) => Data::Float(order.iter().map(|&row| values[row]).collect()),
        Data::Text { names, index } => Data::Text {
            names: names.clone(),
            index: order.iter().map(|&row| index[row]).collect(),
        },
    }
}

/// Numbers the words of a column in the order of their first appearance.
fn renumber(data: &mut Data) {
    let Data::Text { names, index } = data else { return };
    let mut numbers = vec![None; names.len()];
    let mut order = Vec::new();
    for word in index {
        if let Some(number) = usize::try_from(*word).ok().and_then(|at| numbers.get_mut(at)) {
            let new_word = number.get_or_insert_with(|| {
                order.push(*word as usize);
                order.len() as i32 - 1
            });
            *word = *new_word;
        }
    }
    *names = order.into_iter().map(|at| std::mem::take(&mut names[at])).collect();
}
