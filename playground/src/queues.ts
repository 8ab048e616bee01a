// The links where flows wait: of each flow the one where the recording has it wait longest.

/** A link of which the page shows the queue, and the numbers of the flows that wait there longest. */
export interface QueueLink {
  link: string;
  rate_bps: number | null;
  flows: number[];
}

/** The links of the flows' bottlenecks in the order of the flows; the first recorded one where no flow has a bottleneck. */
export function queuesOf(flows: readonly { bottleneck: string | null }[], links: readonly { link: string; rate_bps: number | null }[]): QueueLink[] {
  const queues = new Map<string, QueueLink>();
  flows.forEach(({ bottleneck }, number) => {
    const facts = links.find(({ link }) => link === bottleneck);
    if (!facts) return;
    const queue = queues.get(facts.link);
    if (queue) queue.flows.push(number);
    else queues.set(facts.link, { link: facts.link, rate_bps: facts.rate_bps, flows: [number] });
  });
  const first = links[0];
  if (!queues.size && first) return [{ link: first.link, rate_bps: first.rate_bps, flows: [] }];
  return [...queues.values()];
}

/** The queue's name where a page shows several: its link and the flows that wait there longest. */
export function titleOf({ link, flows }: QueueLink, labels: readonly string[]): string {
  const names = flows.slice(0, 4).map((flow) => labels[flow]!);
  return `${link}: ${names.join(", ")}${flows.length > 4 ? ` and ${flows.length - 4} more` : ""}`;
}

/** The rates at which two flows fill their links: one for both where they share the link, else one of each. */
export function ratesOf(queues: readonly QueueLink[]): { shared: number | null } | { each: (number | null)[] } {
  const of = (flow: number) => queues.find(({ flows }) => flows.includes(flow));
  const [first, second] = [of(0), of(1)];
  if (first === second || !first || !second) return { shared: (first ?? second ?? queues[0])?.rate_bps ?? null };
  return { each: [first.rate_bps, second.rate_bps] };
}
