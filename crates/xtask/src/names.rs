//! `docs/reference/paths.md`: the named paths, media and workloads.

use crate::output::{MARK, Output};
use dragstrip_experiment::{HOSTS, MEDIA, PATHS, WORKLOADS};
use std::fmt::Write;

const HEAD: &str = "# Paths, media and workloads by name

`dragstrip list --paths`, `--media` and `--workloads` show these in the terminal.

## Paths
Use `dragstrip compare --path \"home DSL\" cubic bbr`, or in an [experiment](../how-to/experiments.md) `path = \"home DSL\"`, or
`preset = \"home DSL\"` in `[path]` with other fields, which override it. Case does not matter. A named path is one plausible
path of its kind, not an average: each entry lists what was published and what we chose. A saved experiment contains the
fields, not the name.

";

/// The page.
pub fn page() -> Output {
    let mut text = format!("{MARK}{HEAD}");
    for path in PATHS {
        let _ = writeln!(text, "### {}", path.name);
        let _ = writeln!(text, "{}. Also: {}.\n", capital(path.about), path.aliases.join(", "));
        let mut rows: Vec<String> =
            path.fields.iter().map(|(field, value)| format!("{field} = \"{value}\"")).collect();
        rows.extend(path.media.iter().map(|(name, form)| format!("media.{name} = {form}")));
        let _ = writeln!(text, "```\n{}\n```", rows.join("\n"));
        for source in path.sources {
            let _ = writeln!(text, "- Published: {source}.");
        }
        let _ = writeln!(text, "- Chosen: {}.\n", path.chosen);
    }
    text.push_str("## Media\n`--medium NAME`, or `medium = \"NAME\"` without an entry of that name in `[media]`.\n\n");
    text.push_str("| name | what | there | back | source |\n|---|---|---|---|---|\n");
    for medium in MEDIA {
        let back = medium.up.map_or("the same medium".to_owned(), |form| format!("`{form}`"));
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` | {back} | {} |",
            medium.name, medium.about, medium.form, medium.source
        );
    }
    text.push_str(
        "\n## Hosts\n`--hosts KIND`, or `preset = \"KIND\"` in `[hosts.\"*\"]`; `gso` and the fields of `interface` beside it override it. \
         [Which kind to name](../how-to/hosts.md).\n\n",
    );
    text.push_str("| name | what | fields | after |\n|---|---|---|---|\n");
    for host in HOSTS {
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` | {} |",
            host.name, host.about, host.form, host.source
        );
    }
    text.push_str(
        "\n## Workloads\n`--workload NAME`. Each algorithm gets these flows, multiplied by `--flows`; *up* is from the receiver to the senders. In `tcp_Nup` and \
         `tcp_Ndown` N is a number, or `n`, for which `--flows` gives the number. In `web`, `rpc` and the videos the receiver sends requests and the senders respond, so the data cross the bottleneck. \
         What goes up meets the modem's buffer: [the receiver stands behind a router](../how-to/compare.md#traffic) \
         unless `--receiver-on-line` says otherwise.\n\n",
    );
    text.push_str("| name | what | source |\n|---|---|---|\n");
    for workload in WORKLOADS {
        let _ =
            writeln!(text, "| `{}` | {} | {} |", workload.name, workload.about, workload.source);
    }
    text.push_str(
        "\nDifferences from [flent](https://flent.org)'s tests: latency is measured by \
         ICMP pings alone; the load lasts the whole run (flent waits 5 s before and after it).\n",
    );
    Output { path: "docs/reference/paths.md", text }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
