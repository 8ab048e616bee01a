//! Flows: which hosts they run between, what they are called, what they do.

use crate::applications::ApplicationForm;
use crate::arrivals::Arrival;
use crate::parts::u32_of;
use crate::problem;
use crate::quantity::TimeText;
use crate::types::FlowForm;
use crate::words::SCREAM;
use dragstrip_scenario::{
    Application, Dscp, FlowSpec, NodeSpec, Problem, SocketBuffers, Transport,
};
use std::collections::BTreeMap;

/// Defaults: flow i goes from sender i to receiver i, in turn; flows in the other direction are counted separately. In
/// an entry with arrivals, its hosts send in turn.
pub(crate) fn flows(
    forms: &[FlowForm],
    arrivals: &[Option<Vec<Arrival>>],
    in_short: bool,
    nodes: &[NodeSpec],
) -> Result<Vec<FlowSpec>, Problem> {
    let hosts = nodes.iter().filter_map(NodeSpec::host).map(|host| host.name.as_str());
    let in_turn = |first: char| -> Vec<&str> {
        let matching_hosts = hosts.clone().filter(|name| name.starts_with(first));
        if in_short { matching_hosts.collect() } else { Vec::new() }
    };
    let (senders, receivers) = (in_turn('s'), in_turn('d'));
    let mut labels = labels(forms, arrivals).into_iter();
    let mut turns = [0_usize; 2];
    let mut specs: Vec<FlowSpec> = Vec::new();
    for (position, (flow, arrived)) in forms.iter().zip(arrivals).enumerate() {
        let first = turns[usize::from(flow.reverse)];
        turns[usize::from(flow.reverse)] += usize::try_from(flow.count).unwrap_or(usize::MAX);
        for copy in 0..flows_of(flow, arrived.as_deref()) {
            let turn = first + (copy % flow.count) as usize;
            let arrival = arrived.as_ref().map(|all| all[copy as usize]);
            let start_ns = flow.start.0.saturating_add(copy.saturating_mul(flow.stagger.0));
            let bytes = flow.bytes.map(|bytes| bytes.0);
            let end = |host_name: &String, hosts: &[&str], field: &str| {
                if !host_name.is_empty() {
                    return Ok(host_name.clone());
                }
                let missing = "is missing: without [path] a flow names both its hosts";
                let none = || problem(&format!("flows[{position}].{field}"), "", missing);
                let at = turn.checked_rem(hosts.len()).ok_or_else(none)?;
                Ok(hosts[at].to_owned())
            };
            let (near, far) =
                if flow.reverse { (&receivers, &senders) } else { (&senders, &receivers) };
            let socket = SocketBuffers {
                send_bytes: flow.send_buffer.map(u32_of),
                receive_bytes: flow.receive_buffer.map(u32_of),
            };
            let transport = match &flow.cc {
                None => Transport::Udp,
                Some(cc) if cc.contains('/') => {
                    without_tcp(flow, position)?;
                    Transport::Quic { cc: cc.clone(), cc_options: flow.cc_options.clone() }
                }
                Some(cc) => Transport::Tcp {
                    cc: cc.clone(),
                    cc_options: flow.cc_options.clone(),
                    receiver_cc: flow.receiver_cc.clone(),
                    socket,
                },
            };
            specs.push(FlowSpec {
                label: labels.next().unwrap_or_default(),
                sender: end(&flow.sender, near, "sender")?,
                receiver: end(&flow.receiver, far, "receiver")?,
                transport,
                application: application(
                    &flow.application,
                    arrival.map_or(bytes, |arrival| Some(arrival.bytes)),
                ),
                start_ns: arrival.map_or(start_ns, |arrival| arrival.start_ns),
                stop_ns: flow.stop.map(|stop| stop.0),
                source: arrived.as_ref().and(u32::try_from(position).ok()),
                dscp: flow.dscp.as_deref().and_then(Dscp::named).unwrap_or_default().value(),
                mark: flow.mark,
            });
        }
    }
    Ok(specs)
}

/// Refuses settings of TCP in a flow of QUIC.
fn without_tcp(flow: &FlowForm, position: usize) -> Result<(), Problem> {
    let given = [
        ("receiver_cc", flow.receiver_cc.clone()),
        ("send_buffer", flow.send_buffer.map(|bytes| bytes.0.to_string())),
        ("receive_buffer", flow.receive_buffer.map(|bytes| bytes.0.to_string())),
    ];
    match given.into_iter().find_map(|(field, value)| Some((field, value?))) {
        None => Ok(()),
        Some((field, value)) => {
            let expected = "none for a flow of QUIC: its stack has flow control of its own";
            Err(problem(&format!("flows[{position}].{field}"), &value, expected))
        }
    }
}

/// Number of flows of an entry.
pub(crate) fn flows_of(flow: &FlowForm, arrived: Option<&[Arrival]>) -> u64 {
    arrived.map_or(flow.count, |all| all.len() as u64)
}

/// The given label or the algorithm, numbered where several flows would share it.
fn labels(forms: &[FlowForm], arrivals: &[Option<Vec<Arrival>>]) -> Vec<String> {
    let plain = forms.iter().zip(arrivals).map(|(flow, arrived)| {
        let flow_label = if flow.label.is_empty() { None } else { Some(flow.label.as_str()) };
        let is_rtp = matches!(*flow.application, ApplicationForm::Rtp { .. });
        let datagrams = if is_rtp { SCREAM } else { "udp" };
        (flow_label.or(flow.cc.as_deref()).unwrap_or(datagrams), flows_of(flow, arrived.as_deref()))
    });
    let mut shared: BTreeMap<&str, u64> = BTreeMap::new();
    for (label, count) in plain.clone() {
        *shared.entry(label).or_default() += count;
    }
    let mut used_labels: BTreeMap<&str, u64> = BTreeMap::new();
    let mut labels = Vec::new();
    for (label, count) in plain {
        for _ in 0..count {
            let number = used_labels.entry(label).or_default();
            *number += 1;
            labels.push(if shared[label] > 1 {
                format!("{label}-{number}")
            } else {
                label.to_owned()
            });
        }
    }
    labels
}

/// Bit/s: Netflix's fixed ladder, as its "Per-Title Encode Optimization" (2015) gives it.
const LADDER: [u64; 10] = [
    235_000, 375_000, 560_000, 750_000, 1_050_000, 1_750_000, 2_350_000, 3_000_000, 4_300_000,
    5_800_000,
];

fn application(form: &ApplicationForm, bytes: Option<u64>) -> Application {
    match *form {
        ApplicationForm::Bulk {} => Application::Bulk { bytes },
        ApplicationForm::OnOff { on, off } => Application::OnOff { on_ns: on.0, off_ns: off.0 },
        ApplicationForm::RequestResponse { request, response, think } => {
            Application::RequestResponse {
                request_bytes: request.0,
                response_bytes: response.0,
                think_ns: think.0,
            }
        }
        ApplicationForm::Video {
            adaptation,
            ref ladder,
            segment: TimeText(segment_ns),
            buffer: TimeText(buffer_ns),
            startup,
            reservoir,
            cushion,
            safety,
            request,
        } => {
            let rates = ladder.iter().map(|rate| rate.0);
            let reservoir_ns = reservoir.map_or(buffer_ns / 8 * 3, |time| time.0);
            let top_ns = (buffer_ns / 10 * 9).min(buffer_ns.saturating_sub(segment_ns));
            Application::Video {
                ladder_bps: if ladder.is_empty() { LADDER.to_vec() } else { rates.collect() },
                segment_ns,
                buffer_ns,
                startup_ns: startup.map_or(segment_ns, |time| time.0),
                adaptation,
                reservoir_ns,
                cushion_ns: cushion.map_or(top_ns.saturating_sub(reservoir_ns), |time| time.0),
                safety: safety.0,
                request_bytes: request.0,
            }
        }
        ApplicationForm::ConstantRate { rate, datagram } => {
            Application::ConstantRate { rate_bps: rate.0, datagram_bytes: u32_of(datagram) }
        }
        ApplicationForm::Rtp { min, max, fps, packet, variation, ecn } => Application::Rtp {
            min_bps: min.0,
            max_bps: max.0,
            fps: u32::try_from(fps).unwrap_or(u32::MAX),
            packet_bytes: u32_of(packet),
            variation: variation.0,
            ecn,
        },
        ApplicationForm::Tunnel { header } => Application::Tunnel { header_bytes: u32_of(header) },
        ApplicationForm::Program { ref client, ref server, ref files, ref folder } => {
            Application::Program {
                client: client.clone(),
                server: server.clone(),
                files: files.clone(),
                folder: folder.clone(),
            }
        }
    }
}
