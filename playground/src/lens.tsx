// The race in slow motion: packets in links and queues around the cursor's instant.
import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { greatestOf } from "../../python/dragstrip/report/viewer/columns.js";
import { digits } from "../../python/dragstrip/report/viewer/data.js";
import { looksOf, named } from "./look";
import type { Look, Packets, Picture } from "./protocol";
import { titleOf } from "./queues";

const COLUMNS = 10;
/** Round trips a second of a person's time. */
const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 10];
/** Drawn one by one; more are drawn as single pixels. */
const SHAPES_MAX = 3000;
const HEIGHT = 190;
/** A race of more packets, a second of work or so, is looked at only when somebody asks for it. */
const QUICK_PACKETS = 1e6;
const still = matchMedia("(prefers-reduced-motion: reduce)");

const packets = signal<Packets | null>(null);
const playing = signal(false);
const speed = signal(0.25);
/** Somebody has asked for packets of a race that takes long. */
const isRequested = signal(false);
let requested: { id: number; from: number; to: number } | null = null;

/** What the lens needs of the page. */
export interface LensProps {
  picture: Picture;
  latest: () => number;
  cursor: { value: number | null };
  dark: boolean;
  look: (request: Look) => void;
  say: (words: string) => void;
}

/** The worker's answer; the page hands it on if it is of the latest race. */
export function receive(answer: Packets) {
  requested = null;
  packets.value = answer;
}

/** Another race begins. */
export function forget() {
  requested = null;
  packets.value = null;
  playing.value = false;
  isRequested.value = false;
}

export const rttOf = (it: Picture): number => (it.measures.flows[0]?.rtt_ms?.p50 ?? 40) * 1e6;

/** Where the lens stands: the cursor, or shortly before the first drop. */
function instant({ picture, cursor }: LensProps): number {
  if (cursor.value !== null) return cursor.value;
  const { from, to } = picture.view;
  const firsts = picture.queues.flatMap(({ drops }) => {
    for (let x = 0; 4 * x < drops.length; x++) if (drops[4 * x + 2]! > 0) return [from + (x * 4 * (to - from)) / drops.length];
    return [];
  });
  return firsts.length ? Math.min(...firsts) : (from + to) / 2;
}

/** Asks for the packets around an instant where they are not there yet. */
function want(props: LensProps, t: number) {
  const { picture, latest, look } = props;
  // The picture of the race before stays until the next one's comes: no packets are asked for by it.
  if (!picture.done || picture.id !== latest() || (picture.packets > QUICK_PACKETS && !isRequested.value)) return;
  const rtt = rttOf(picture);
  const ahead = rtt * Math.max(1, playing.value ? speed.value : 1);
  const loaded = packets.value;
  const end = picture.duration;
  const enough = (of: { from: number; to: number }, until: number) => of.from <= t && until <= of.to - rtt;
  if (loaded && enough(loaded, Math.min(t + ahead / 2, end))) return;
  if (requested?.id === latest() && enough(requested, t)) return;
  // A round trip more than is shown: how long a packet under way still takes is known by then.
  requested = { id: latest(), from: Math.max(0, t - rtt / 4), to: Math.min(t + 2 * ahead, end) + rtt };
  look({ kind: "look", ...requested });
}

interface PlacedPacket {
  flow: number;
  back: boolean;
  /** Before its flow's bottleneck, in a queue that is shown, or behind the bottleneck; on the way back always behind. */
  part: "before" | "queue" | "behind";
  /** Which of the picture's queues it is in; of a packet under way, its flow's. */
  queue: number;
  /** From the beginning of its part, 0, to its end, 1; in the queue the place, from its head on. */
  place: number;
  kind: number;
  lost: boolean;
}

/** Where a link begins and ends in its part of a way. */
type Stretch = { part: PlacedPacket["part"]; from: number; to: number };
interface Ways {
  ways: Map<number, Map<number, Stretch>>;
  /** Links with a netem, whose line is the first tenth of their length. */
  delayed: Set<number>;
  /** The links' numbers of the picture's queues. */
  shown: number[];
}

const memo = new WeakMap<Packets, { queues: string; ways: Ways }>();
/** The queue of each flow among the picture's; -1 where it waits nowhere. */
const queueOf = (picture: Picture, flow: number) => picture.queues.findIndex(({ flows }) => flows.includes(flow));
const wayOf = (flow: number, back: number) => 2 * flow + back;

/** The links of each flow and direction in the order in which packets take them, as long as their delay is. */
function waysOf(answer: Packets, picture: Picture): Ways {
  const key = JSON.stringify(picture.queues.map(({ link, flows }) => [link, flows]));
  const before = memo.get(answer);
  if (before?.queues === key) return before.ways;
  const { rows, links } = answer;
  const linksOfWay = new Map<number, Set<number>>();
  const delayed = new Set<number>();
  for (let at = 0; at < rows.length; at += COLUMNS) {
    const way = wayOf(rows[at]!, rows[at + 1]!);
    if (!linksOfWay.has(way)) linksOfWay.set(way, new Set());
    linksOfWay.get(way)!.add(rows[at + 2]!);
    if (rows[at + 3] === 1) delayed.add(rows[at + 2]!);
  }
  const shown = picture.queues.map((queue) => links.findIndex(({ link }) => link === queue.link));
  const ways = new Map<number, Map<number, Stretch>>();
  for (const [way, its] of linksOfWay) {
    // A link comes after the one that leads to its beginning.
    const left = [...its];
    const order: number[] = [];
    let node = left.map((it) => links[it]!.from).find((from) => !left.some((it) => links[it]!.to === from));
    while (left.length) {
      const next = Math.max(0, left.findIndex((it) => links[it]!.from === node));
      const [link] = left.splice(next, 1) as [number];
      order.push(link);
      node = links[link]!.to;
    }
    const bottleneck = way < 0 ? -1 : queueOf(picture, way / 2);
    const first = way % 2 ? -1 : order.findIndex((it) => (bottleneck < 0 ? shown.includes(it) : it === shown[bottleneck]));
    const stretches = new Map<number, Stretch>();
    const put = (part: PlacedPacket["part"], list: number[]) => {
      const lengths = list.map((it) => Math.max(links[it]!.delay_ns, 1));
      const whole = lengths.reduce((a, b) => a + b, 0);
      // No link is so short that nothing can be seen of it.
      const shares = lengths.map((it) => Math.max(it / whole, 0.06));
      const sum = shares.reduce((a, b) => a + b, 0);
      let from = 0;
      list.forEach((link, at) => {
        const to = from + shares[at]! / sum;
        stretches.set(link, { part, from, to });
        from = to;
      });
    };
    put("before", order.slice(0, Math.max(0, first)));
    put("behind", order.slice(Math.max(0, first)));
    ways.set(way, stretches);
  }
  memo.set(answer, { queues: key, ways: { ways, delayed, shown } });
  return { ways, delayed, shown };
}

/** Where each packet is at an instant. What is lost stays for a quarter of a round trip. */
export function at(answer: Packets, picture: Picture, t: number, rtt: number): PlacedPacket[] {
  const { rows, links } = answer;
  const { ways, delayed, shown } = waysOf(answer, picture);
  const places: PlacedPacket[] = [];
  const waiting = shown.map((): { placed: PlacedPacket; leaves: number; begun: number }[] => []);
  for (let row = 0; row < rows.length; row += COLUMNS) {
    const begun = rows[row + 4]!, line = rows[row + 5]!, out = rows[row + 6]!;
    const lost = rows[row + 7] === 1 && out <= t;
    if (begun > t || (lost ? out + rtt / 4 < t : out <= t)) continue;
    const link = rows[row + 2]!, netem = rows[row + 3] === 1;
    const { part, from, to } = ways.get(wayOf(rows[row]!, rows[row + 1]!))!.get(link)!;
    const back = rows[row + 1] === 1;
    const queue = netem || back ? -1 : shown.indexOf(link);
    const placed: PlacedPacket = { flow: rows[row]!, back, part, queue: queue < 0 ? queueOf(picture, rows[row]!) : queue, place: from, kind: rows[row + 8]!, lost };
    if (lost) {
      if (queue >= 0) placed.part = "queue";
    } else if (!netem && !(line <= t)) {
      if (queue >= 0) {
        placed.part = "queue";
        waiting[queue]!.push({ placed, leaves: Number.isNaN(line) ? Number.MAX_VALUE : line, begun });
      }
    } else {
      const [begins, ends] = netem ? [begun, out] : [line, out];
      const [first, last] = delayed.has(link) ? (netem ? [0.1, 1] : [0, 0.1]) : [0, 1];
      const whole = Math.max(1, Number.isNaN(ends) ? links[link]!.delay_ns : ends - begins);
      const share = first + (last - first) * Math.max(0, Math.min(1, (t - begins) / whole));
      placed.place = from + (to - from) * share;
    }
    places.push(placed);
  }
  // Rows come in the order of their ends, and of those still under way in none: who came first leaves first.
  for (const queue of waiting) queue.sort((a, b) => a.leaves - b.leaves || a.begun - b.begun).forEach((it, place) => (it.placed.place = place));
  return places;
}

/** What is where, in words. */
export function inWords(placed: readonly PlacedPacket[], picture: Picture, t: number): string {
  const of = (list: readonly PlacedPacket[]) => {
    const each = picture.flows.map((flow, at) => [flow.label, list.filter((it) => it.flow === at).length] as const).filter(([, count]) => count);
    return `${list.length}${each.length > 1 ? ` (${each.slice(0, 8).map(([label, count]) => `${label} ${count}`).join(", ")})` : ""}`;
  };
  const data = placed.filter((it) => !it.back && !it.lost && it.flow >= 0);
  const inQueue = (number: number) => of(data.filter((it) => it.part === "queue" && it.queue === number));
  const queued = picture.queues.length > 1 ? picture.queues.map(({ link }, number) => `in the queue of ${link} ${inQueue(number)}`) : [`in the queue ${inQueue(0)}`];
  const moving = data.filter((it) => it.part !== "queue");
  const acks = placed.filter((it) => it.back && !it.lost && it.flow >= 0);
  const lost = placed.filter((it) => it.lost);
  const again = data.filter((it) => it.kind & 2);
  const marked = data.filter((it) => it.kind & 4);
  const more = [
    lost.length ? `${of(lost)} just lost` : "",
    again.length ? `${of(again)} retransmitted` : "",
    marked.length ? `${of(marked)} marked` : "",
  ].filter(Boolean);
  return `t = ${(t / 1e9).toFixed(3)} s: ${queued.join(", ")}, on the way ${of(moving)}, coming back ${of(acks)}${more.length ? `; ${more.join(", ")}` : ""}.`;
}

/** The propagation delay of the first flow's way back, in words. */
function delayBack(answer: Packets | null, picture: Picture): string {
  const its = answer && waysOf(answer, picture).ways.get(wayOf(0, 1));
  if (!its) return "";
  const sum = [...its.keys()].reduce((so, link) => so + answer.links[link]!.delay_ns, 0);
  return sum ? `: ${digits(sum / 1e6)} ms of delay` : "";
}

function draw(canvas: HTMLCanvasElement, width: number, answer: Packets | null, placed: readonly PlacedPacket[], picture: Picture, dark: boolean) {
  const [ink, faint, ghost] = [named("ink", dark), named("grid", dark), named("grey", dark)];
  const ratio = devicePixelRatio || 1;
  const rooms = Math.max(1, picture.queues.length);
  const roomHeight = rooms === 1 ? 86 : Math.max(24, 60 - 4 * rooms);
  const roomStep = roomHeight + 20;
  const extra = (rooms - 1) * roomStep + roomHeight - 86;
  const height = HEIGHT + extra;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const to = canvas.getContext("2d")!;
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.clearRect(0, 0, width, height);
  to.font = "12px system-ui, sans-serif";
  to.textBaseline = "middle";
  const narrow = width < 500;
  const [left, right] = [8, width - 8];
  const room = { from: left + (right - left) * 0.16, to: left + (right - left) * (narrow ? 0.5 : 0.42) };
  const topOf = (queue: number) => 24 + Math.max(0, queue) * roomStep;
  const roadOf = (queue: number) => topOf(queue) + roomHeight / 2;
  const home = 158 + extra;
  const labels = picture.flows.map((flow) => flow.label);
  for (let queue = 0; queue < rooms; queue++) {
    const beneath = roadOf(queue) + 14;
    to.fillStyle = faint;
    to.fillRect(left, beneath, room.from - left, 1);
    to.fillRect(room.to, beneath, right - room.to, 1);
    to.strokeStyle = ghost;
    to.strokeRect(room.from + 0.5, topOf(queue) + 0.5, room.to - room.from - 1, roomHeight - 1);
    const count = placed.filter((it) => it.part === "queue" && it.queue === queue && !it.lost).length;
    to.fillStyle = ink;
    to.textAlign = "left";
    to.fillText(rooms > 1 ? `${titleOf(picture.queues[queue]!, labels)}: ${count}` : `queue: ${count}`, room.from, topOf(queue) - 11);
  }
  to.fillStyle = faint;
  to.fillRect(left, home + 8, right - left, 1);
  to.fillStyle = ink;
  to.textAlign = "left";
  if (!narrow) to.fillText("senders", left, 12);
  to.fillText(`← ACKs${delayBack(answer, picture)}`, left, home - 20);
  to.textAlign = "right";
  to.fillText("receivers", right, 12);

  // As large as the longest queue of the race allows.
  const inside = { wide: room.to - room.from - 8, high: roomHeight - 8 };
  const longest = greatestOf(picture.queues.map(({ backlog }) => backlog)) / 1500;
  const most = placed.reduce((so, it) => Math.max(so, it.part === "queue" ? it.place + 1 : 0), longest);
  let cell = 12;
  while (cell > 1 && Math.floor(inside.wide / cell) * Math.floor(inside.high / cell) < most) cell -= 1;
  const rowsOf = Math.max(1, Math.floor(inside.high / cell));
  const looks = looksOf(picture.flows.map((flow) => flow.cc), dark);
  const lanes = Math.min(picture.flows.length, 6);
  const plain = placed.length > SHAPES_MAX;
  for (const it of placed) {
    to.fillStyle = it.flow >= 0 ? looks[it.flow]!.colour : ghost;
    const lane = it.flow >= 0 ? (it.flow % lanes) - (lanes - 1) / 2 : 0;
    const [road, bottom] = [roadOf(it.queue), topOf(it.queue) + roomHeight];
    let size = 7;
    let x: number;
    let y: number;
    if (it.part === "queue" && it.lost) {
      x = room.from + 4 + (((it.flow + 1) * 14) % Math.max(1, inside.wide - 12));
      y = bottom + 4;
    } else if (it.part === "queue") {
      // Its head is at the right.
      size = Math.max(1, cell - 1);
      x = room.to - 4 - cell * (1 + Math.floor(it.place / rowsOf));
      y = bottom - 4 - cell * (1 + (it.place % rowsOf));
      if (x < room.from + 2) continue;
    } else if (it.back) {
      x = right - 2 - (right - left) * it.place;
      y = home + lane * 4;
    } else {
      const [from, until] = it.part === "before" ? [left, room.from - 8] : [room.to, right - 8];
      x = from + (until - from) * it.place;
      y = road + lane * 10;
    }
    if (plain) to.fillRect(x, y, Math.min(size, 2), Math.min(size, 2));
    else if (it.lost) {
      // A cross.
      to.fillRect(x + 3, y, 2, 8);
      to.fillRect(x, y + 3, 8, 2);
    } else if (!(it.kind & 1)) to.fillRect(x, y, 2, Math.min(size, 5));
    else {
      to.fillRect(x, y, size, size);
      // Retransmitted: hollow. Marked: a notch.
      if (it.kind & 2 && size > 3) to.clearRect(x + 2, y + 2, size - 4, size - 4);
      if (it.kind & 4 && size > 3) to.clearRect(x + size - 3, y, 3, 3);
    }
  }
}

export function Lens(props: LensProps) {
  const ref = useRef<HTMLCanvasElement>(null);
  const wordsRef = useRef<HTMLParagraphElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const show = () => {
    const now = latest.current;
    const canvas = ref.current;
    if (!canvas) return;
    const t = instant(now);
    want(now, t);
    const answer = packets.value;
    const current = answer && answer.from <= t && t <= answer.to ? answer : null;
    // While the next stretch is on its way the last picture stays.
    if (!current && (answer ? requested : now.picture.packets <= QUICK_PACKETS) && canvas.clientWidth === canvas.parentElement!.clientWidth) return;
    const placed = current ? at(current, now.picture, t, rttOf(now.picture)) : [];
    draw(canvas, canvas.parentElement!.clientWidth, current, placed, now.picture, now.dark);
    if (!playing.value) {
      const words = current ? `${inWords(placed, now.picture, t)}${current.full ? " There are more than are shown." : ""}` : "";
      wordsRef.current!.textContent = words;
      canvas.setAttribute("aria-label", `Packets in slow motion. ${words}`);
    }
  };
  useLayoutEffect(() => {
    show();
  });
  useEffect(() => {
    // Drawn anew at each width: no canvas is scaled.
    const watch = new ResizeObserver(show);
    watch.observe(ref.current!.parentElement!);
    return () => watch.disconnect();
  }, []);
  useEffect(() => effect(() => {
    // Whatever these say, the picture follows.
    void [packets.value, props.cursor.value, isRequested.value];
    show();
  }), []);
  useEffect(() => effect(() => {
    if (!playing.value) return;
    let before = performance.now();
    let frame = 0;
    const step = (now: number) => {
      frame = requestAnimationFrame(step);
      // No motion for whom it is too much: a quarter of a round trip each second.
      if (still.matches && now - before < 1000) return;
      const { picture, cursor } = latest.current;
      const t = instant(latest.current);
      const answer = packets.value;
      const rtt = rttOf(picture);
      const passed = still.matches ? 0.25 : speed.peek() * Math.min(0.1, (now - before) / 1000);
      before = now;
      const next = t + passed * rtt;
      if (next >= picture.duration) playing.value = false;
      // It waits where the packets are not there yet.
      else if (!answer || next <= answer.to) cursor.value = next;
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }), []);
  const turn = () => {
    isRequested.value = true;
    playing.value = !playing.value;
    if (!playing.value) show();
  };
  const jump = (rtts: number) => {
    isRequested.value = true;
    playing.value = false;
    const { picture, cursor, say } = latest.current;
    cursor.value = Math.max(0, Math.min(picture.duration, instant(latest.current) + rtts * rttOf(picture)));
    requestAnimationFrame(() => say(wordsRef.current?.textContent ?? ""));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      " ": turn,
      ArrowLeft: () => jump(event.shiftKey ? -1 : -0.1),
      ArrowRight: () => jump(event.shiftKey ? 1 : 0.1),
    };
    const act = acts[event.key];
    if (!act || (event.key === " " && event.target instanceof HTMLButtonElement) || event.target instanceof HTMLSelectElement) return;
    event.preventDefault();
    act();
  };
  const slow = props.picture.packets > QUICK_PACKETS && !isRequested.value;
  return (
    <section class="lens" aria-label="Packets in slow motion" onKeyDown={keys}>
      <div class="row">
        <button type="button" aria-label="A tenth of an RTT back" onClick={() => jump(-0.1)}>◀</button>
        <button type="button" class="turn" onClick={turn}>{playing.value ? "Pause" : "Play"}</button>
        <button type="button" aria-label="A tenth of an RTT on" onClick={() => jump(0.1)}>▶</button>
        <label class="row">RTTs a second
          <select value={String(speed.value)} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
            {SPEEDS.map((it) => <option key={it} value={String(it)}>{it}</option>)}
          </select>
        </label>
      </div>
      {slow && <p>This race takes a while: its packets are shown when you press Play.</p>}
      <div class="view" tabIndex={0} role="group" aria-label="Packets: space plays and pauses, arrows step by a tenth of an RTT, with Shift by one">
        <canvas ref={ref} role="img" aria-label="Packets in slow motion" />
      </div>
      <p class="lens-words" ref={wordsRef} />
    </section>
  );
}
