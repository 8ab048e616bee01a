/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the kernel shows a congestion control, and what it takes from one.
 *
 * Only the fields that are used here, in any order: clang notes every access by the field's name, and the loader puts
 * in the offset that the running kernel has (CO-RE). A header generated from one kernel would be of two megabytes, and of
 * that kernel. To use another field, add its line under the kernel's own name.
 *
 * Reading is free; of tcp_sock a program may write snd_cwnd, snd_cwnd_cnt, snd_ssthresh, ecn_flags, the pacing rate and
 * its status, and its own icsk_ca_priv (Linux 6.1, net/ipv4/bpf_tcp_ca.c).
 */
#pragma once

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))

struct sock {
	unsigned long sk_pacing_rate; /* bytes/s */
	__u32 sk_pacing_status;
} KERNEL;

#define SK_PACING_NEEDED 1

struct inet_connection_sock {
	__u8 icsk_ca_state : 5; /* 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss */
	__u64 icsk_ca_priv[13]; /* 104 bytes of the algorithm's own */
} KERNEL;

struct tcp_sock {
	__u32 snd_nxt, snd_una;
	__u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh;
	__u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	__u32 data_segs_out;
	__u32 delivered, delivered_ce, lost; /* packets so far */
	__u32 prior_cwnd;
	__u32 mss_cache, srtt_us; /* bytes; eighths of us */
	__u64 tcp_mstamp; /* now, in us */
	__u32 is_cwnd_limited : 1;
} KERNEL;

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us; /* negative: none */
	__u32 in_flight;
} KERNEL;

struct rate_sample;

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
};

/* ssthresh, undo_cwnd and one of cong_avoid and cong_control must be there. */
struct tcp_congestion_ops {
	char name[16]; /* letters, digits, _ and . */
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, const struct rate_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
};

/* The kernel's own, for whoever differs from Reno only in part. */
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
/* Grows up to the threshold; answers with what of `acked` is left. */
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
/* Grows by one for every `w` acknowledged. */
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *own_state(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline __u32 at_least(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline __u32 at_most(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* Sequence numbers and clocks of 32 bits wrap. */
static __always_inline int after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

static __always_inline int in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether growth is justified: the window, not the application, was the limit (in slow start up to twice what was used). */
static __always_inline int cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}
