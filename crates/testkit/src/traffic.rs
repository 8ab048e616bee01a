//! Random hosts, flows and pings.

use crate::links::rate_bps;
use dragstrip_scenario::{
    Adaptation, Application, CpuSpec, FlowSpec, GsoMode, HostSpec, InterruptSpec, RtpEcn,
    SocketBuffers, StackProfile, Transport,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// Settings that change how an endpoint works, each now and then.
fn sysctls() -> impl Strategy<Value = BTreeMap<String, String>> {
    let choices: &[(&str, &[&str])] = &[
        ("net.ipv4.tcp_sack", &["0"]),
        ("net.ipv4.tcp_dsack", &["0"]),
        ("net.ipv4.tcp_timestamps", &["0"]),
        ("net.ipv4.tcp_window_scaling", &["0"]),
        ("net.ipv4.tcp_ecn", &["0", "1", "1"]),
        ("net.ipv4.tcp_recovery", &["0", "3", "5"]),
        ("net.ipv4.tcp_early_retrans", &["0"]),
        ("net.ipv4.tcp_frto", &["0"]),
        ("net.ipv4.tcp_reordering", &["1", "10", "100"]),
        ("net.ipv4.tcp_slow_start_after_idle", &["0"]),
        ("net.ipv4.tcp_adv_win_scale", &["-2", "2"]),
        ("net.ipv4.tcp_moderate_rcvbuf", &["0"]),
        ("net.ipv4.tcp_comp_sack_nr", &["0"]),
        ("net.ipv4.tcp_rmem", &["4096 4608 8192", "4096 20000 60000"]),
        ("net.ipv4.tcp_wmem", &["4096 4608 8192", "4096 16384 40000"]),
        ("net.ipv4.tcp_limit_output_bytes", &["1000"]),
    ];
    let strategies: Vec<_> = choices
        .iter()
        .map(|(name, values)| {
            let value = select(values.to_vec());
            proptest::option::weighted(0.12, value)
                .prop_map(move |value| value.map(|value| ((*name).to_owned(), value.to_owned())))
        })
        .collect();
    strategies.prop_map(|set| set.into_iter().flatten().collect())
}

/// A processor, sometimes one of two that hosts share, now and then one without time for anything.
fn cpu() -> impl Strategy<Value = CpuSpec> {
    let shared = proptest::option::of(select(vec!["one".to_owned(), "other".to_owned()]));
    let time = || prop_oneof![1 => Just(0), 4 => 0..100_000_u64, 1 => 0..5 * MS];
    (shared, time(), time(), time()).prop_map(|(shared, receive_ns, ack_ns, send_ns)| CpuSpec {
        shared,
        receive_ns,
        ack_ns,
        send_ns,
    })
}

/// A network card with interrupts, with and without GRO.
fn interrupts() -> impl Strategy<Value = InterruptSpec> {
    let gap = prop_oneof![1 => Just(1), 4 => 1..300_000_u64, 1 => 1..5 * MS];
    (gap, proptest::bool::ANY).prop_map(|(gap_ns, gro)| InterruptSpec { gap_ns, gro })
}

/// A host without its name.
pub(crate) fn host() -> impl Strategy<Value = HostSpec> {
    let mtu = prop_oneof![6 => Just(1500_u32), 1 => 68..1500_u32, 1 => Just(576_u32)];
    let gso =
        prop_oneof![2 => Just(GsoMode::Off), 1 => Just(GsoMode::Auto), 1 => Just(GsoMode::Whole)];
    let cpu = proptest::option::weighted(0.25, cpu());
    let interrupts = proptest::option::weighted(0.25, interrupts());
    (sysctls(), mtu, gso, select(vec![100_u32, 250, 250, 300, 1000]), cpu, interrupts).prop_map(
        |(sysctl, mtu_bytes, gso, tick_hz, cpu, interrupts)| HostSpec {
            interrupts: interrupts.filter(|_| cpu.is_none()),
            name: String::new(),
            profile: StackProfile::Linux6,
            sysctl,
            gso,
            mtu_bytes,
            tick_hz: Some(tick_hz),
            history: None,
            cpu,
        },
    )
}

fn application() -> impl Strategy<Value = Application> {
    prop_oneof![
        4 => Just(Application::Bulk { bytes: None }),
        2 => (1..300_000_u64).prop_map(|bytes| Application::Bulk { bytes: Some(bytes) }),
        2 => (MS..300 * MS, 0..1_500 * MS).prop_map(|(on_ns, off_ns)| Application::OnOff { on_ns, off_ns }),
        2 => (1..5_000_u64, 1..60_000_u64, 0..400 * MS).prop_map(
            |(request_bytes, response_bytes, think_ns)| {
                Application::RequestResponse { request_bytes, response_bytes, think_ns }
            },
        ),
        1 => video(),
    ]
}

/// A player with short segments, so that there are several in a short run.
fn video() -> impl Strategy<Value = Application> {
    let adaptation = select(vec![Adaptation::Buffer, Adaptation::Throughput]);
    (1..400_u64, 2..30_u64, 1..30_u64, adaptation, 8..2_000_u64).prop_map(
        |(segment, segments, startup, adaptation, request_bytes)| {
            let segment_ns = segment * MS;
            let room = segment_ns * (segments - 1);
            Application::Video {
                ladder_bps: vec![20_000, 70_000, 300_000, 2_000_000],
                segment_ns,
                buffer_ns: segment_ns * segments,
                startup_ns: (segment_ns * startup).min(room),
                adaptation,
                reservoir_ns: room / 3,
                cushion_ns: room / 2,
                safety: 0.9,
                request_bytes,
            }
        },
    )
}

/// A live video whose packets fit the smallest MTU but one.
fn rtp() -> impl Strategy<Value = Application> {
    let ecn = select(vec![RtpEcn::None, RtpEcn::Classic, RtpEcn::L4s]);
    (10_000..200_000_u64, 1..50_u64, 1..100_u32, 0.0..0.9_f64, ecn).prop_map(
        |(min_bps, times, fps, variation, ecn)| Application::Rtp {
            min_bps,
            max_bps: min_bps * times,
            fps,
            packet_bytes: 100,
            variation,
            ecn,
        },
    )
}

fn transport() -> impl Strategy<Value = Transport> {
    let names = ["reno", "cubic", "vegas", "cdg", "cdg-freebsd", "bbr", "exp", "fixed"];
    select(names.to_vec()).prop_map(|cc| Transport::Tcp {
        cc: cc.to_owned(),
        cc_options: BTreeMap::new(),
        receiver_cc: None,
        socket: SocketBuffers::default(),
    })
}

/// A flow between hosts that are still to be chosen: by these two numbers.
pub(crate) fn flow() -> impl Strategy<Value = (usize, usize, FlowSpec)> {
    let tcp = (transport(), application());
    // Datagrams fit the smallest MTU; 8 bytes every 640 µs at most.
    let udp = (rate_bps(), 8..40_u32).prop_map(|(rate_bps, datagram_bytes)| {
        let rate_bps = rate_bps.min(100_000);
        (Transport::Udp, Application::ConstantRate { rate_bps, datagram_bytes })
    });
    let udp = prop_oneof![3 => udp, 1 => rtp().prop_map(|video| (Transport::Udp, video))];
    let times = (prop_oneof![Just(0), 0..300 * MS], proptest::option::weighted(0.3, 1..900 * MS));
    (any::<usize>(), any::<usize>(), prop_oneof![5 => tcp, 1 => udp], times).prop_map(
        |(from, to, (transport, application), (start_ns, lasts_ns))| {
            let flow = FlowSpec {
                label: String::new(),
                sender: String::new(),
                receiver: String::new(),
                transport,
                application,
                start_ns,
                stop_ns: lasts_ns.map(|lasts| start_ns + lasts),
                source: None,
                dscp: 0,
                mark: 0,
            };
            (from, to, flow)
        },
    )
}
