/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A policy at work in the kernel: crates/cc/src/agent with whole numbers.
 *
 * A file that `dragstrip policy-bpf` writes defines before this one:
 *   NAME (the field .name), RATE (1: it sets the pacing rate, else the window), STEP_US or STEP_RTTS (Q16), FIGURES, HISTORY, WIDTH,
 *   KEEP (a loss costs no window), WINDOW_FIRST and RATE_FIRST (bytes/s; 0: the kernel's own first window),
 *   OBSERVE(figure) with FIGURE(name, low, high) for each, decide() and apply().
 *
 * Where it departs from the simulator's agent: a step ends with the first ACK at or after its time, for a program of this
 * kind has no timer. The slope of the round-trip time takes the first 8192 samples of the first second of a step.
 */
#pragma once

#define RATE_MIN 125ULL
#define RATE_MAX 125000000000ULL
#define WINDOW_MAX (1U << 24)
#define RATE_WINDOW_MIN 10
#define STEP_MIN_US 1000
#define SLOPE_SAMPLES 8192
#define SLOPE_US (1 << 20)
#define NONE (~0ULL)
#define CA_DISORDER 1

struct counters {
	__u32 delivered, marked, lost, sent;
};

/* Least squares over (us since the step began, us above its first sample). */
struct slope {
	__u32 samples;
	__s32 first;
	__s64 t, r, tr, tt;
};

struct agent {
	__u64 began, due; /* us */
	struct counters then;
	struct slope slope;
	__u64 rtt_sum;
	__u32 rtt_samples, rtt_last, rtt_max, rtt_min; /* us */
	__u64 mean_ns, mean_min_ns;
	__u64 throughput_max; /* Q16 Mbit/s */
	__u64 rate; /* bytes/s */
	__u32 window, begun, actions;
	__s64 action;
	__s64 seen[FIGURES * HISTORY];
	__s64 room[2 * WIDTH];
};

/* What the figures are made of. */
struct step {
	struct tcp_sock *tp;
	struct agent *agent;
	__u64 interval; /* us */
	struct counters since;
	__u64 throughput, pacing; /* Q16 Mbit/s */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct agent);
} agents SEC(".maps");

static __always_inline struct agent *agent_of(struct sock *sk)
{
	return bpf_sk_storage_get(&agents, sk, 0, 0);
}

static __always_inline __u64 quotient(__u64 a, __u64 b)
{
	return b ? a / b : 0;
}

static __always_inline __u64 ratio(__u64 a, __u64 b)
{
	return quotient(a << PLACES, b);
}

static __always_inline __s64 signed_quotient(__s64 a, __u64 b)
{
	return a < 0 ? -(__s64)quotient(-a, b) : (__s64)quotient(a, b);
}

/* --- figures (crates/cc/src/agent/figures.rs), Q16 -------------------------------------------- */

static __always_inline __u64 mbps(const struct step *step, __u64 packets)
{
	return quotient(packets * step->tp->mss_cache << (PLACES + 3), step->interval);
}

static __always_inline __u64 milliseconds(__u64 us)
{
	return (us << PLACES) / 1000;
}

static __always_inline __s64 latency_gradient(const struct step *step)
{
	const struct slope *s = &step->agent->slope;
	__s64 rise, run;

	if (s->samples < 2)
		return 0;
	rise = s->tr - ((s->t * signed_quotient(s->r << 8, s->samples)) >> 8);
	run = s->tt - ((s->t * signed_quotient(s->t << 8, s->samples)) >> 8);
	if (run <= 0)
		return 0;
	if (rise >= 1LL << 46 || rise <= -(1LL << 46)) {
		rise >>= 8;
		run >>= 8;
	}
	return signed_quotient(rise << PLACES, run);
}

static __always_inline __s64 rtt_ratio(const struct step *step)
{
	__u64 smooth = step->tp->srtt_us >> 3, least = step->agent->rtt_min;

	if (!smooth || least > smooth)
		return ONE;
	return ratio(least, smooth);
}

static __always_inline __s64 delay_metric(const struct step *step)
{
	__s64 metric = rtt_ratio(step) * 5 / 4;

	return metric > ONE ? ONE : metric;
}

#define GIVEN(name, value) \
	static __always_inline __s64 name(const struct step *step) { return value; }

GIVEN(interval_s, (step->interval << PLACES) / 1000000)
GIVEN(throughput_mbps, step->throughput)
GIVEN(sent_mbps, mbps(step, step->since.sent))
GIVEN(lost_mbps, mbps(step, step->since.lost))
GIVEN(loss_ratio, ratio(step->since.lost, (__u64)step->since.lost + step->since.delivered))
GIVEN(marked_ratio, ratio(step->since.marked, step->since.delivered))
GIVEN(rtt_ms, (step->agent->mean_ns << PLACES) / 1000000)
GIVEN(rtt_last_ms, milliseconds(step->agent->rtt_last))
GIVEN(rtt_max_ms, step->agent->rtt_samples ? milliseconds(step->agent->rtt_max) : rtt_ms(step))
GIVEN(rtt_min_ms, milliseconds(step->agent->rtt_min))
GIVEN(srtt_ms, milliseconds(step->tp->srtt_us >> 3))
GIVEN(latency_ratio, step->agent->mean_min_ns == NONE ? ONE : ratio(step->agent->mean_ns, step->agent->mean_min_ns))
GIVEN(send_ratio, step->since.delivered ? ratio(step->since.sent, step->since.delivered) : ONE)
GIVEN(throughput_ratio, ratio(step->throughput, step->agent->throughput_max))
GIVEN(pacing_ratio, ratio(step->pacing, step->agent->throughput_max))
GIVEN(lost_ratio, ratio(5 * mbps(step, step->since.lost), step->agent->throughput_max))
GIVEN(acked_ratio, ratio(step->since.delivered, step->tp->snd_cwnd))
GIVEN(cwnd_packets, (__u64)step->tp->snd_cwnd << PLACES)
GIVEN(in_flight_packets, (__u64)(step->tp->packets_out - step->tp->sacked_out - step->tp->lost_out + step->tp->retrans_out) << PLACES)
GIVEN(pacing_mbps, step->pacing)
GIVEN(throughput_max_mbps, step->agent->throughput_max)
GIVEN(delivered_packets, (__u64)step->since.delivered << PLACES)
GIVEN(lost_packets, (__u64)step->since.lost << PLACES)
GIVEN(sent_packets, (__u64)step->since.sent << PLACES)
GIVEN(rtt_samples, (__u64)step->agent->rtt_samples << PLACES)
GIVEN(mss_bytes, (__u64)step->tp->mss_cache << PLACES)
GIVEN(action, step->agent->action)

/* --- the step ---------------------------------------------------------------------------------- */

static __always_inline void note_sample(struct agent *agent, __u64 now, __u32 rtt)
{
	struct slope *s = &agent->slope;
	__s64 at = now - agent->began, above;

	agent->rtt_sum += rtt;
	agent->rtt_last = rtt;
	agent->rtt_max = at_least(agent->rtt_max, rtt);
	agent->rtt_min = at_most(agent->rtt_min, rtt);
	if (!agent->rtt_samples++)
		s->first = rtt;
	above = (__s64)rtt - s->first;
	if (at < 0 || at >= SLOPE_US || s->samples >= SLOPE_SAMPLES || above >= SLOPE_US || above <= -SLOPE_US)
		return;
	s->samples++;
	s->t += at;
	s->r += above;
	s->tr += at * above;
	s->tt += at * at;
}

static __always_inline void read_counters(struct tcp_sock *tp, struct counters *now)
{
	now->delivered = tp->delivered;
	now->marked = tp->delivered_ce;
	now->lost = tp->lost;
	now->sent = tp->data_segs_out;
}

static __always_inline void begin(struct tcp_sock *tp, struct agent *agent)
{
	agent->began = tp->tcp_mstamp;
	read_counters(tp, &agent->then);
	agent->rtt_sum = 0;
	agent->rtt_samples = 0;
	agent->rtt_max = 0;
	__builtin_memset(&agent->slope, 0, sizeof(agent->slope));
}

static __always_inline void observe(struct sock *sk, struct agent *agent)
{
	struct step step = {.tp = tcp_sk(sk), .agent = agent};
	__s64 *newest = agent->seen + FIGURES * (HISTORY - 1);

	step.interval = step.tp->tcp_mstamp - agent->began;
	read_counters(step.tp, &step.since);
	step.since.delivered -= agent->then.delivered;
	step.since.marked -= agent->then.marked;
	step.since.lost -= agent->then.lost;
	step.since.sent -= agent->then.sent;
	step.throughput = mbps(&step, step.since.delivered);
	step.pacing = sk->sk_pacing_rate == ~0UL ? 0 : (sk->sk_pacing_rate << (PLACES + 3)) / 1000000;
	if (agent->rtt_samples) {
		agent->mean_ns = agent->rtt_sum * 1000 / agent->rtt_samples;
		if (agent->mean_ns < agent->mean_min_ns)
			agent->mean_min_ns = agent->mean_ns;
	}
	if (step.throughput > agent->throughput_max)
		agent->throughput_max = step.throughput;

#pragma clang loop unroll(disable)
	for (int at = 0; at < FIGURES * (HISTORY - 1); at++)
		agent->seen[at] = agent->seen[at + FIGURES];
#define FIGURE(name, low, high) \
	do { \
		__s64 value = name(&step); \
		*newest++ = value < (low) ? (low) : value > (high) ? (high) : value; \
	} while (0);
	OBSERVE
	if (!agent->actions) {
#pragma clang loop unroll(disable)
		for (int at = FIGURES * (HISTORY - 1) - 1; at >= 0; at--)
			agent->seen[at] = agent->seen[at + FIGURES];
	}
}

/* The rate, and a window that does not hold it back: two round trips of it. */
static __always_inline void set_rate(struct sock *sk, struct agent *agent)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 eighths = 4000000ULL * tp->mss_cache;
	__u64 packets = quotient(agent->rate * tp->srtt_us + eighths - 1, eighths);

	sk->sk_pacing_rate = agent->rate;
	tp->snd_cwnd = at_most(at_least(packets > WINDOW_MAX ? WINDOW_MAX : packets, RATE_WINDOW_MIN), tp->snd_cwnd_clamp);
}

static __always_inline void set_window(struct sock *sk, struct agent *agent, __u32 window)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (window == agent->window)
		return;
	agent->window = window;
	if (KEEP)
		tp->snd_ssthresh = at_least(window, 2);
	/* A reduction and the time after a timeout are the kernel's. */
	if (BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state) <= CA_DISORDER)
		tp->snd_cwnd = at_most(window, tp->snd_cwnd_clamp);
}

/* Ends the step if it is over: observes, decides, acts, and begins the next one. */
static __always_inline void end_step(struct sock *sk, struct agent *agent)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 length;

	if (!agent->begun || tp->tcp_mstamp < agent->due)
		return;
	observe(sk, agent);
#ifdef STEP_US
	length = STEP_US;
#else
	length = (agent->mean_ns * STEP_RTTS >> PLACES) / 1000;
	if (length < STEP_MIN_US)
		length = STEP_MIN_US;
#endif
	agent->due = tp->tcp_mstamp + length;
	begin(tp, agent);
	agent->action = decide(agent->seen, agent->room, agent->room + WIDTH);
	agent->actions++;
#if RATE
	agent->rate = apply(agent->action, agent->rate);
	agent->rate = agent->rate < RATE_MIN ? RATE_MIN : agent->rate > RATE_MAX ? RATE_MAX : agent->rate;
#else
	set_window(sk, agent, at_most(at_least(apply(agent->action, agent->window), 1), WINDOW_MAX));
#endif
}

SEC("struct_ops/policy_init")
void BPF_PROG(policy_init, struct sock *sk)
{
	struct agent *agent = bpf_sk_storage_get(&agents, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 rtt = tp->srtt_us >> 3;

	if (!agent)
		return;
	agent->mean_min_ns = NONE;
	agent->rtt_min = ~0U;
	begin(tp, agent);
	if (WINDOW_FIRST)
		tp->snd_cwnd = at_most(WINDOW_FIRST, tp->snd_cwnd_clamp);
	agent->window = tp->snd_cwnd;
#if RATE
	if (rtt < 1000)
		rtt = 1000;
	agent->rate = RATE_FIRST ? RATE_FIRST : (__u64)tp->snd_cwnd * tp->mss_cache * 1000000 / rtt;
	sk->sk_pacing_status = SK_PACING_NEEDED;
	set_rate(sk, agent);
#else
	if (KEEP)
		tp->snd_ssthresh = at_least(agent->window, 2);
#endif
}

SEC("struct_ops/policy_pkts_acked")
void BPF_PROG(policy_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct agent *agent = agent_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!agent)
		return;
	if (sample->rtt_us >= 0)
		note_sample(agent, tp->tcp_mstamp, sample->rtt_us);
	if (!agent->begun) {
		agent->begun = 1;
		agent->due = tp->tcp_mstamp;
	}
#if !RATE
	end_step(sk, agent);
#endif
}

SEC("struct_ops/policy_ssthresh")
__u32 BPF_PROG(policy_ssthresh, struct sock *sk)
{
	struct agent *agent = agent_of(sk);
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (!KEEP || !agent)
		return at_least(cwnd >> 1, 2);
	return at_least(RATE ? cwnd : agent->window, 2);
}

SEC("struct_ops/policy_undo_cwnd")
__u32 BPF_PROG(policy_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return at_least(tp->snd_cwnd, tp->prior_cwnd);
}

#if RATE
SEC("struct_ops/policy_cong_control")
void BPF_PROG(policy_cong_control, struct sock *sk)
{
	struct agent *agent = agent_of(sk);

	if (!agent)
		return;
	end_step(sk, agent);
	set_rate(sk, agent);
}
#else
SEC("struct_ops/policy_cong_avoid")
void BPF_PROG(policy_cong_avoid, struct sock *sk)
{
	struct agent *agent = agent_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (agent)
		tp->snd_cwnd = at_most(agent->window, tp->snd_cwnd_clamp);
}
#endif

SEC(".struct_ops")
struct tcp_congestion_ops operations = {
	NAME,
	.init = (void *)policy_init,
	.pkts_acked = (void *)policy_pkts_acked,
	.ssthresh = (void *)policy_ssthresh,
	.undo_cwnd = (void *)policy_undo_cwnd,
#if RATE
	.cong_control = (void *)policy_cong_control,
#else
	.cong_avoid = (void *)policy_cong_avoid,
#endif
};

char _license[] SEC("license") = "Dual MIT/GPL";
