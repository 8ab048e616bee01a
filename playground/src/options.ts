// The fields of the page's form. Generated: `cargo xtask generate`; the table is in crates/experiment/src/race.rs.

export type TextField = "path" | "rate" | "medium" | "rtt" | "queue" | "workload" | "duration" | "stagger" | "loss" | "jitter" | "netem" | "up_rate" | "up_netem" | "receiver_cc" | "seed";

/** Options with a field of text. */
export const TEXTS: readonly TextField[] = ["path", "rate", "medium", "rtt", "queue", "workload", "duration", "stagger", "loss", "jitter", "netem", "up_rate", "up_netem", "receiver_cc", "seed"];

/** What each option does, in one sentence. */
export const ABOUT: Record<TextField, string> = {
  path: "A path by name, such as 'home DSL' (dragstrip list --paths).",
  rate: "Rate of the bottleneck, such as 10mbit.",
  medium: "Medium of the bottleneck instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
  rtt: "Round-trip time of the empty path, such as 40ms.",
  queue: "Queue of the bottleneck: 1bdp (the default; of a medium pfifo), 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel.",
  workload: "What the flows do: bulk, web, 'poisson load=60% sizes=web-search', ... (dragstrip list --workloads).",
  duration: "Duration of each run, such as 30s.",
  stagger: "Time between the starts of a run's flows, such as 5s.",
  loss: "Random packet loss behind the bottleneck, such as 1%.",
  jitter: "Jitter: each packet is delayed by 0 to twice this, such as 5ms, and may be overtaken.",
  netem: "Any impairment behind the bottleneck in netem's words, such as 'slot 5ms packets 20' (packets held and released together).",
  up_rate: "Rate of the return path, such as 1mbit; default: unlimited; with --both-ways, the forward rate.",
  up_netem: "Any impairment of the return path in netem's words, such as 'slot 4ms' (ACKs held and released together) or 'loss 10%'.",
  receiver_cc: "Congestion control of the receivers' sockets: a listener that runs cubic refuses dctcp's and prague's ECN; default: the sender's.",
  seed: "Seed of the random numbers, of the first repeat.",
};
