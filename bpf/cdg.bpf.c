// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * CDG: backs off, by chance, when delay is rising.
 *
 * Paper:      Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients", IFIP Networking 2011.
 * Equations:  per round trip, the gradients of its minimum and its maximum RTT, summed over 8 rounds; backoff with
 *             probability 1 - exp(-g / G), g the mean gradient, G = 3 ms; a backoff keeps 0.7071 of the window. A shadow
 *             window remembers what a loss-based flow would have: loss halves that, not what backoffs have left.
 * Departs from the paper as Linux does (crates/cc/src/algorithms/cdg/linux.rs tells where), and from Linux's module in this:
 * - A BPF program cannot ask for a reduction (tcp_enter_cwr is not open to it). A backoff is carried out here, over a
 *   round trip by the same proportional rule (RFC 6937), while the connection stays in the state Open.
 * - Loss tolerance, which the module has and leaves off, is not here.
 * - exp(-x) is a product of 32-bit constants, closer than the module's table.
 * The coin is the kernel's, so two runs agree in distribution, not in their windows.
 */
#include "kernel.h"

#define ROUNDS 8
/* Of 1024. */
#define BACKOFF_BETA 724
/* 1000 / (G * ROUNDS), G in ms: sums of gradients in us become millionths of the exponent. */
#define BACKOFF_FACTOR 42
/* So many backoffs without a falling gradient show that they have no effect. */
#define INEFFECTUAL 5
/* A gradient sum at or below this shows that a backoff had one, us. */
#define EFFECTUAL_US -32
/* HyStart: ACKs closer than this are one train; no delay below this counts; samples before a round's minimum counts. */
#define TRAIN_GAP_US 3000
#define DELAY_US_MIN 125
#define DELAY_SAMPLES 8
/* Credit for delayed ACKs that the filter may hold. */
#define DELACK_MAX 5

/* Of a round's RTT, or their gradients, us; zero is "none". */
struct extremes {
	__s32 min, max;
};

struct cdg {
	struct extremes rtt, rtt_prev, sum, gradients[ROUNDS];
	__u32 tail, filled;
	/* The round ends when this byte is acknowledged. */
	__u32 round_end;
	__u32 shadow, backoffs, delacks;
	__u32 delay_min, samples;
	/* Of the round's train of ACKs, us; last_ack is 0 until its first. */
	__u64 last_ack, train_start;
	/* A backoff under way, until this byte is acknowledged. */
	__u32 reducing, reduction_end, prior_cwnd, delivered, sent_before;
};

/* Too large for icsk_ca_priv. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cdg);
} states SEC(".maps");

static __always_inline struct cdg *state(struct sock *sk)
{
	return bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void begin(struct sock *sk, struct cdg *cdg)
{
	cdg->round_end = tcp_sk(sk)->snd_nxt;
	cdg->shadow = tcp_sk(sk)->snd_cwnd;
}

static __always_inline void next_round(struct sock *sk, struct cdg *cdg)
{
	cdg->round_end = tcp_sk(sk)->snd_nxt;
	cdg->rtt_prev = cdg->rtt;
	cdg->rtt.min = 0;
	cdg->rtt.max = 0;
}

static __always_inline __s32 min_not_zero(__s32 a, __s32 b)
{
	if (!a || !b)
		return a | b;
	return a < b ? a : b;
}

/* Whether the train of ACKs has lasted longer than half the base delay. */
static __always_inline int train_is_long(struct tcp_sock *tp, struct cdg *cdg)
{
	__u64 now = tp->tcp_mstamp;

	if (!cdg->last_ack || !cwnd_limited(tp)) {
		cdg->last_ack = now;
		cdg->train_start = now;
		return 0;
	}
	if (now >= cdg->last_ack + TRAIN_GAP_US)
		return 0;
	cdg->last_ack = now;
	return now > cdg->train_start + at_least(cdg->delay_min / 2, DELAY_US_MIN);
}

/* Whether the delay of this round shows a queue. */
static __always_inline int delay_is_long(struct cdg *cdg)
{
	if (cdg->samples < DELAY_SAMPLES) {
		cdg->samples++;
		return 0;
	}
	return cdg->rtt.min > at_least(cdg->delay_min + cdg->delay_min / 8, DELAY_US_MIN);
}

/* HyStart, at any window. */
static __always_inline void hystart(struct tcp_sock *tp, struct cdg *cdg)
{
	cdg->delay_min = min_not_zero(cdg->delay_min, cdg->rtt.min);
	if (!cdg->delay_min)
		return;
	if (train_is_long(tp, cdg) || delay_is_long(cdg))
		tp->snd_ssthresh = tp->snd_cwnd;
}

/* The gradient that a backoff is decided by, us summed over the rounds; 0 if it does not rise. */
static __always_inline __u32 gradient(struct cdg *cdg)
{
	struct extremes *slot = &cdg->gradients[cdg->tail & (ROUNDS - 1)];
	__s32 min = cdg->rtt.min - cdg->rtt_prev.min;
	__s32 max = cdg->rtt.max - cdg->rtt_prev.max;
	__s32 rise;

	cdg->sum.min += min - slot->min;
	cdg->sum.max += max - slot->max;
	slot->min = min;
	slot->max = max;
	cdg->tail = (cdg->tail + 1) & (ROUNDS - 1);
	if (!cdg->tail)
		cdg->filled = 1;
	if (cdg->sum.min <= EFFECTUAL_US || cdg->sum.max <= EFFECTUAL_US)
		cdg->backoffs = 0;

	rise = cdg->sum.min > 0 ? cdg->sum.min : cdg->sum.max;
	if (rise <= 0)
		return 0;
	/* Extrapolates the rounds not yet seen. */
	return cdg->filled ? rise : (__u32)rise * ROUNDS / cdg->tail;
}

/* exp(-millionths / 10^6) in 2^32nds: the product over the bits that are set. */
static __always_inline __u32 negative_exponential(__u32 millionths)
{
	/* exp(-2^k / 10^6) * 2^32 for bit k. */
	const __u32 factors[] = {
		4294963001, 4294958706, 4294950116, 4294932936, 4294898577, 4294829859, 4294692427, 4294417575,
		4293867925, 4292768836, 4290571501, 4286180204, 4277411090, 4259926646, 4225171877, 4156510670,
		4022517462, 3767350393, 3304548791, 2542520574, 1505112944, 527446385, 64773413, 976863,
	};
	__u64 product = 0xffffffff;

	if (millionths >= 1 << 24)
		return 0;
#pragma unroll
	for (int bit = 0; bit < 24; bit++)
		if (millionths & 1 << bit)
			product = product * factors[bit] >> 32;
	return product;
}

/* Tosses the coin, and begins the reduction if it falls so. */
static __always_inline int backs_off(struct tcp_sock *tp, struct cdg *cdg, __u32 rise)
{
	__u32 cwnd = tp->snd_cwnd;

	if (bpf_get_prandom_u32() <= negative_exponential(rise * BACKOFF_FACTOR))
		return 0;
	if (++cdg->backoffs > INEFFECTUAL)
		return 0;
	cdg->shadow = at_least(cdg->shadow, cwnd);
	cdg->reducing = 1;
	cdg->reduction_end = tp->snd_nxt;
	cdg->prior_cwnd = cwnd;
	cdg->delivered = 0;
	cdg->sent_before = tp->data_segs_out;
	tp->snd_ssthresh = at_least((__u64)cwnd * BACKOFF_BETA >> 10, 2);
	tp->snd_cwnd_cnt = 0;
	return 1;
}

/* Proportional rate reduction: what leaves is to what arrives as the new window to the old. */
static __always_inline void reduce(struct tcp_sock *tp, struct cdg *cdg, __u32 acked)
{
	__u32 in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	__u32 sent = tp->data_segs_out - cdg->sent_before;
	__u32 target = tp->snd_ssthresh;
	__s32 more; /* packets that may leave now */

	cdg->delivered += acked;
	if (in_flight > target) {
		more = ((__u64)target * cdg->delivered + cdg->prior_cwnd - 1) / cdg->prior_cwnd - sent;
	} else {
		more = cdg->delivered - sent;
		more = at_most(target - in_flight, (more > (__s32)acked ? more : acked) + 1);
	}
	if (more < !sent) /* the first packet leaves in any case */
		more = !sent;
	tp->snd_cwnd = in_flight + more;
}

SEC("struct_ops/cdg_init")
void BPF_PROG(cdg_init, struct sock *sk)
{
	struct cdg *cdg = state(sk);

	/* The handshake's RTT is there already, and stays the first round's, as in the module. */
	if (cdg)
		begin(sk, cdg);
}

SEC("struct_ops/cdg_ssthresh")
__u32 BPF_PROG(cdg_ssthresh, struct sock *sk)
{
	struct cdg *cdg = state(sk);
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (!cdg)
		return tcp_reno_ssthresh(sk);
	if (cdg->reducing) { /* once per round trip: this reduction goes on as the kernel's */
		cdg->reducing = 0;
		return tcp_sk(sk)->snd_ssthresh;
	}
	cdg->shadow = at_most(cdg->shadow >> 1, cwnd);
	return at_least(at_least(cdg->shadow, cwnd >> 1), 2);
}

SEC("struct_ops/cdg_cong_avoid")
void BPF_PROG(cdg_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cdg *cdg = state(sk);
	__u32 before;

	if (!cdg) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (cdg->reducing) {
		if (!after(ack, cdg->reduction_end)) {
			reduce(tp, cdg, acked);
			return;
		}
		tp->snd_cwnd = tp->snd_ssthresh;
		cdg->reducing = 0;
		next_round(sk, cdg); /* the reduction moved the RTT: its gradient says nothing */
	}
	if (in_slow_start(tp))
		hystart(tp, cdg);
	if (after(ack, cdg->round_end) && cdg->rtt.max) {
		__u32 rise = cdg->rtt_prev.max ? gradient(cdg) : 0;

		next_round(sk, cdg);
		cdg->last_ack = 0;
		cdg->samples = 0;
		if (rise && backs_off(tp, cdg, rise))
			return;
	}
	if (!cwnd_limited(tp)) {
		cdg->shadow = at_most(cdg->shadow, tp->snd_cwnd);
		return;
	}
	before = tp->snd_cwnd;
	tcp_reno_cong_avoid(sk, ack, acked);
	cdg->shadow += tp->snd_cwnd - before;
}

SEC("struct_ops/cdg_cwnd_event")
void BPF_PROG(cdg_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct cdg *cdg = state(sk);

	if (!cdg)
		return;
	if (event == CA_EVENT_CWND_RESTART) {
		__builtin_memset(cdg, 0, sizeof(*cdg));
		begin(sk, cdg);
	} else if (event == CA_EVENT_COMPLETE_CWR) {
		next_round(sk, cdg); /* the reduction moved the RTT: its gradient says nothing */
	}
}

SEC("struct_ops/cdg_pkts_acked")
void BPF_PROG(cdg_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct cdg *cdg = state(sk);

	if (!cdg || sample->rtt_us <= 0)
		return;
	/*
	 * Hayes' filter: after an ACK for several packets one for a single packet was delayed, and counts only if it lowers
	 * the minimum.
	 */
	if (!tcp_sk(sk)->sacked_out) {
		if (sample->pkts_acked == 1 && cdg->delacks) {
			if (cdg->rtt.min > sample->rtt_us)
				cdg->rtt.min = sample->rtt_us;
			cdg->delacks--;
			return;
		}
		if (sample->pkts_acked > 1 && cdg->delacks < DELACK_MAX)
			cdg->delacks++;
	}
	cdg->rtt.min = min_not_zero(cdg->rtt.min, sample->rtt_us);
	if (cdg->rtt.max < sample->rtt_us)
		cdg->rtt.max = sample->rtt_us;
}

SEC("struct_ops/cdg_undo_cwnd")
__u32 BPF_PROG(cdg_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops operations = {
	.name = "bpf_cdg",
	.init = (void *)cdg_init,
	.ssthresh = (void *)cdg_ssthresh,
	.cong_avoid = (void *)cdg_cong_avoid,
	.cwnd_event = (void *)cdg_cwnd_event,
	.pkts_acked = (void *)cdg_pkts_acked,
	.undo_cwnd = (void *)cdg_undo_cwnd,
};

char _license[] SEC("license") = "Dual MIT/GPL";
