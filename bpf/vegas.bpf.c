// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Vegas: keeps a few packets queued in the network, no more, and backs off before loss.
 *
 * Paper:      Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8), 1995.
 * Equations:  once per round trip, diff = cwnd * (RTT - baseRTT) / baseRTT, the packets queued in the network;
 *             diff < ALPHA: cwnd += 1; diff > BETA: cwnd -= 1; in slow start, diff > GAMMA ends it.
 * Departs from the paper as Linux does (crates/cc/src/algorithms/vegas/linux.rs tells where); with the kernel's module it shares
 * every decision, so that the two have the same window (tests/vm/test_bpf.py). Its name differs: that one's is taken.
 */
#include "kernel.h"

#define ALPHA 2
#define BETA 4
#define GAMMA 1

/* Longer than any round-trip time, us: "no sample yet". */
#define NO_RTT 0x7fffffffU

struct vegas {
	/* The round ends when this byte is acknowledged. */
	__u32 round_end;
	/* Samples of this round, and the least of them; the least of all, us. */
	__u32 samples, rtt, base_rtt;
	/* Whether the window rule applies: only while nothing is wrong. */
	__u8 steering;
};

static __always_inline void forget_round(struct vegas *vegas)
{
	vegas->samples = 0;
	vegas->rtt = NO_RTT;
}

/* A new round, judged by its own samples. */
static __always_inline void start(struct sock *sk)
{
	struct vegas *vegas = own_state(sk);

	vegas->steering = 1;
	vegas->round_end = tcp_sk(sk)->snd_nxt;
	forget_round(vegas);
}

static __always_inline void begin(struct sock *sk)
{
	struct vegas *vegas = own_state(sk);

	vegas->base_rtt = NO_RTT;
	start(sk);
}

/* What the kernel would remember as the threshold in the state Open (tcp_current_ssthresh). */
static __always_inline __u32 remembered_ssthresh(struct tcp_sock *tp)
{
	return at_least(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

/* The decision of a round. */
static __always_inline void steer(struct sock *sk, __u32 acked)
{
	struct vegas *vegas = own_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 cwnd = tp->snd_cwnd, rtt = vegas->rtt, base = vegas->base_rtt;
	__u32 target = (__u64)cwnd * base / rtt;
	__u32 diff = cwnd * (rtt - base) / base;

	if (in_slow_start(tp)) {
		if (diff > GAMMA) {
			/* One more than the target: cutting it off would cost full utilisation. */
			tp->snd_cwnd = at_most(cwnd, target + 1);
			tp->snd_ssthresh = at_most(tp->snd_ssthresh, tp->snd_cwnd);
		} else {
			tcp_slow_start(tp, acked);
		}
	} else if (diff > BETA) {
		tp->snd_cwnd = cwnd - 1;
		tp->snd_ssthresh = at_most(tp->snd_ssthresh, tp->snd_cwnd);
	} else if (diff < ALPHA) {
		tp->snd_cwnd = cwnd + 1;
	}
	tp->snd_cwnd = at_most(at_least(tp->snd_cwnd, 2), tp->snd_cwnd_clamp);
	tp->snd_ssthresh = remembered_ssthresh(tp);
}

SEC("struct_ops/vegas_init")
void BPF_PROG(vegas_init, struct sock *sk)
{
	begin(sk);
}

SEC("struct_ops/vegas_ssthresh")
__u32 BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/vegas_cong_avoid")
void BPF_PROG(vegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct vegas *vegas = own_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!vegas->steering) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if (after(ack, vegas->round_end)) {
		vegas->round_end = tp->snd_nxt;
		/* One or two samples are one delayed ACK each: no round-trip time of the network among them. */
		if (vegas->samples <= 2)
			tcp_reno_cong_avoid(sk, ack, acked);
		else
			steer(sk, acked);
		forget_round(vegas);
	} else if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
	}
}

SEC("struct_ops/vegas_set_state")
void BPF_PROG(vegas_set_state, struct sock *sk, __u8 new_state)
{
	struct vegas *vegas = own_state(sk);

	if (new_state == TCP_CA_Open)
		start(sk);
	else
		vegas->steering = 0;
}

SEC("struct_ops/vegas_cwnd_event")
void BPF_PROG(vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	/* After an idle time old samples say nothing about the path. */
	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		begin(sk);
}

SEC("struct_ops/vegas_pkts_acked")
void BPF_PROG(vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = own_state(sk);
	__u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = sample->rtt_us + 1; /* never zero: it is divided by */
	vegas->base_rtt = at_most(vegas->base_rtt, rtt);
	vegas->rtt = at_most(vegas->rtt, rtt);
	vegas->samples++;
}

SEC("struct_ops/vegas_undo_cwnd")
__u32 BPF_PROG(vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops operations = {
	.name = "bpf_vegas",
	.init = (void *)vegas_init,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.set_state = (void *)vegas_set_state,
	.cwnd_event = (void *)vegas_cwnd_event,
	.pkts_acked = (void *)vegas_pkts_acked,
	.undo_cwnd = (void *)vegas_undo_cwnd,
};

char _license[] SEC("license") = "Dual MIT/GPL";
