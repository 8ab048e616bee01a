// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Exp: Reno with a faster slow start and a gentler reduction; the worked example of docs/how-to/new-algorithm.md.
 *
 * Paper:      none. A course exercise that changes two of Reno's numbers.
 * Equations:  slow start cwnd += (FACTOR - 1) * acked, that is times FACTOR in a round trip;
 *             congestion avoidance cwnd += acked / cwnd; on congestion ssthresh = 3/4 cwnd.
 * The same in the simulator: crates/cc/src/algorithms/exp.rs.
 */
#include "kernel.h"

#define FACTOR 3

SEC("struct_ops/exp_ssthresh")
__u32 BPF_PROG(exp_ssthresh, struct sock *sk)
{
	__u64 cwnd = tcp_sk(sk)->snd_cwnd;

	return at_least(cwnd * 3 / 4, 2);
}

SEC("struct_ops/exp_cong_avoid")
void BPF_PROG(exp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		/* What does not fit below the threshold comes back as growth; count it as packets. */
		acked = tcp_slow_start(tp, acked * (FACTOR - 1)) / (FACTOR - 1);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops/exp_undo_cwnd")
__u32 BPF_PROG(exp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops operations = {
	.name = "exp",
	.ssthresh = (void *)exp_ssthresh,
	.cong_avoid = (void *)exp_cong_avoid,
	.undo_cwnd = (void *)exp_undo_cwnd,
};

char _license[] SEC("license") = "Dual MIT/GPL";
