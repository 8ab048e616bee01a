//! The loop around a stack: after every input its endpoint and its connection exchange events, streams are read and written, and
//! datagrams leave until there are none.

use crate::contract::{Outbox, Snapshot};
use dragstrip_cc::program::Fault;
use dragstrip_units::Instant;

/// One end of a connection of any stack.
pub(crate) trait Connection {
    fn open(&mut self, now: Instant, out: &mut dyn Outbox);
    fn write_until(&mut self, total: u64, now: Instant, out: &mut dyn Outbox);
    fn stop_writing(&mut self);
    fn on_datagram(&mut self, payload: &[u8], now: Instant, out: &mut dyn Outbox);
    fn on_deadline(&mut self, now: Instant, out: &mut dyn Outbox);
    fn deadline(&self) -> Instant;
    fn bytes_read(&self) -> u64;
    fn snapshot(&self) -> Snapshot;
    fn take_rtt_ns(&mut self) -> Option<u64>;
    fn take_loss(&mut self) -> Option<String>;
    fn fault(&self) -> Option<Fault>;
}

/// Datagrams of a burst that the stack may hand over at once.
pub(crate) const BURST_DATAGRAMS: usize = 10;

/// The port of each end; addresses only tell the two apart.
pub(crate) const PORTS: [u16; 2] = [49_152, 443];

/// A stack's algorithm with its defaults, and with an initial window in bytes where one is given.
macro_rules! configured {
    ($config:ty, $initial_window:expr) => {{
        let mut config = <$config>::default();
        if let Some(bytes) = $initial_window {
            config.initial_window(bytes);
        }
        Arc::new(config)
    }};
}

/// The loop for one stack, whose module has the functions in which the stacks differ.
macro_rules! connection {
    ($proto:ident) => {
        use crate::clock::{simulated_time, stack_time};
        use crate::contract::{Outbox, Role, Settings, Snapshot};
        use crate::data::{Data, SEND_WINDOWS, ZEROES};
        use crate::secrets::Secrets;
        use crate::seeds::{CID_BYTES, connection_ids, generator};
        use crate::watch::Figures;
        use dragstrip_cc::program::Fault;
        use dragstrip_scenario::quic::FlowSettings;
        use dragstrip_units::{Instant, Stream};
        use std::net::{IpAddr, Ipv4Addr, SocketAddr};
        use std::sync::{Arc, Mutex};

        /// Draws connection IDs.
        struct ConnectionIds(Arc<Mutex<Stream>>);

        fn draw(stream: &Mutex<Stream>) -> $proto::ConnectionId {
            let bytes = match stream.lock() {
                Ok(mut stream) => stream.next_u64().to_le_bytes(),
                Err(poisoned) => poisoned.into_inner().next_u64().to_le_bytes(),
            };
            $proto::ConnectionId::new(&bytes[..CID_BYTES])
        }

        impl $proto::ConnectionIdGenerator for ConnectionIds {
            fn generate_cid(&mut self) -> $proto::ConnectionId {
                draw(&self.0)
            }

            fn cid_len(&self) -> usize {
                CID_BYTES
            }

            fn cid_lifetime(&self) -> Option<std::time::Duration> {
                None
            }
        }

        /// Time of day at which nothing happens.
        struct NoTime;

        impl $proto::TimeSource for NoTime {
            fn now(&self) -> crate::clock::StackTime {
                crate::clock::StackTime::UNIX_EPOCH
            }
        }

        /// One end of a connection.
        pub(crate) struct End {
            endpoint: $proto::Endpoint,
            /// To open the connection with; a server has none.
            client: Option<$proto::ClientConfig>,
            peer: SocketAddr,
            connection: Option<($proto::ConnectionHandle, $proto::Connection)>,
            stream_count: u32,
            streams: Vec<$proto::StreamId>,
            data: Data,
            figures: Arc<Figures>,
            established: bool,
            loss: Option<String>,
            /// Of the stack's timers.
            deadline: Instant,
            /// Figures of the path and of the congestion control after the last input.
            path: ($proto::PathStats, ControllerMetrics),
            /// The last burst.
            burst: Vec<u8>,
        }

        pub(crate) fn connection(
            settings: &Settings<'_>,
        ) -> Box<dyn crate::connection::Connection + Send + Sync> {
            let figures = Arc::new(Figures::default());
            let mut transport = $proto::TransportConfig::default();
            transport
                .initial_mtu(settings.payload_bytes)
                .min_mtu(settings.payload_bytes)
                .mtu_discovery_config(None)
                .congestion_controller_factory(Arc::new(Watching {
                    factory: factory(settings, &figures),
                    figures: Arc::clone(&figures),
                }));
            let FlowSettings { stream_window, streams, ack_threshold, initial_window: _ } =
                settings.flow;
            transport
                .stream_receive_window(stream_window.into())
                .send_window(SEND_WINDOWS * u64::from(stream_window))
                .max_concurrent_uni_streams(streams.into());
            if let Some(threshold) = ack_threshold {
                let mut frequency = $proto::AckFrequencyConfig::default();
                // The stacks count the packets that may wait; the one beyond is acknowledged at once.
                frequency.ack_eliciting_threshold(threshold.into());
                transport.ack_frequency_config(Some(frequency));
            }
            let transport = Arc::new(transport);
            let random = Secrets::new(settings.seed, settings.connection).random;
            let ids = Arc::new(Mutex::new(connection_ids(settings)));
            let mut config = $proto::EndpointConfig::new(Arc::new(ResetKey));
            let own_ids = Arc::clone(&ids);
            config.rng_seed(Some(generator(settings)));
            set_ids(&mut config, move || Box::new(ConnectionIds(Arc::clone(&own_ids))));
            // Validation keeps it at 1,200 at least.
            let _ = config.max_udp_payload_size(settings.payload_bytes);
            let [client_end, server_end] = [1, 2].map(|host| {
                let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
                SocketAddr::new(address, crate::connection::PORTS[usize::from(host) - 1])
            });
            let (peer, client, server) = match settings.role {
                Role::Client => {
                    let mut client = $proto::ClientConfig::new(Arc::new(Sessions(random)));
                    client
                        .transport_config(transport)
                        .token_store(Arc::new($proto::NoneTokenStore))
                        .initial_dst_cid_provider(Arc::new(move || draw(&ids)));
                    (server_end, Some(client), None)
                }
                Role::Server => {
                    let mut server =
                        $proto::ServerConfig::new(Arc::new(Sessions(random)), Arc::new(TokenKey));
                    server.transport_config(transport).time_source(Arc::new(NoTime));
                    (client_end, None, Some(Arc::new(server)))
                }
            };
            Box::new(End {
                endpoint: endpoint(config, server),
                client,
                peer,
                connection: None,
                stream_count: streams,
                streams: Vec::new(),
                data: Data::default(),
                figures,
                established: false,
                loss: None,
                deadline: Instant::NEVER,
                path: Default::default(),
                burst: Vec::new(),
            })
        }

        impl End {
            /// Lets endpoint and connection exchange what they have for each other, and sends what is due.
            fn drive(&mut self, now: Instant, out: &mut dyn Outbox) {
                loop {
                    self.exchange();
                    self.write();
                    if !self.transmit(now, out) {
                        break;
                    }
                }
                if let Some((_, connection)) = &mut self.connection {
                    self.path = path(connection);
                    self.deadline =
                        connection.poll_timeout().map_or(Instant::NEVER, simulated_time);
                }
            }

            #[allow(
                clippy::wildcard_enum_match_arm,
                reason = "the stacks tell more than is needed here, and not the same"
            )]
            fn exchange(&mut self) {
                let Some((handle, connection)) = &mut self.connection else { return };
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
                while let Some(event) = connection.poll() {
                    match event {
                        $proto::Event::Connected => {
                            self.established = true;
                            let streams = (0..self.stream_count)
                                .filter_map(|_| connection.streams().open($proto::Dir::Uni));
                            if self.client.is_some() {
                                self.streams = streams.collect();
                            }
                            self.data.may_write = true;
                        }
                        $proto::Event::ConnectionLost { reason } => {
                            self.loss = Some(reason.to_string());
                        }
                        $proto::Event::Stream($proto::StreamEvent::Opened { dir }) => {
                            while let Some(stream) = connection.streams().accept(dir) {
                                self.data.read += read(connection, stream);
                            }
                        }
                        $proto::Event::Stream($proto::StreamEvent::Readable { id }) => {
                            self.data.read += read(connection, id);
                        }
                        $proto::Event::Stream(_) => self.data.may_write = true,
                        _ => {}
                    }
                }
            }

            /// Fills the streams in turn, until none has room.
            fn write(&mut self) {
                let Some((_, connection)) = &mut self.connection else { return };
                if !self.data.may_write || self.streams.is_empty() {
                    return;
                }
                let mut full = 0;
                while self.data.next_len() > 0 && full < self.streams.len() {
                    let stream = self.streams[self.data.turn % self.streams.len()];
                    let chunk = &ZEROES[..self.data.next_len()];
                    match connection.send_stream(stream).write(chunk) {
                        Ok(bytes) if bytes > 0 => {
                            self.data.written += bytes as u64;
                            full = 0;
                        }
                        Ok(_) | Err(_) => full += 1,
                    }
                    self.data.turn += 1;
                }
                self.data.may_write = false;
            }

            /// Sends everything that may leave now; true if there was anything.
            fn transmit(&mut self, now: Instant, out: &mut dyn Outbox) -> bool {
                let Some((_, connection)) = &mut self.connection else { return false };
                let mut any = false;
                loop {
                    self.burst.clear();
                    let Some(burst) = poll_transmit(connection, stack_time(now), &mut self.burst)
                    else {
                        return any;
                    };
                    any = true;
                    let datagram_len = burst.segment_size.unwrap_or(burst.size).max(1);
                    for datagram in self.burst[..burst.size].chunks(datagram_len) {
                        out.send(datagram);
                    }
                }
            }
        }

        /// Reads what has arrived in order on a stream; its length.
        fn read(connection: &mut $proto::Connection, stream: $proto::StreamId) -> u64 {
            let mut bytes = 0;
            let mut stream = connection.recv_stream(stream);
            let Ok(mut chunks) = stream.read(true) else { return 0 };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                bytes += chunk.bytes.len() as u64;
            }
            // The window's update leaves with the datagrams that follow anyway.
            let _ = chunks.finalize();
            bytes
        }

        impl crate::connection::Connection for End {
            fn open(&mut self, now: Instant, out: &mut dyn Outbox) {
                let Some(client) = self.client.clone() else { return };
                match self.endpoint.connect(stack_time(now), client, self.peer, "dragstrip.invalid")
                {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => self.loss = Some(error.to_string()),
                }
                self.drive(now, out);
            }

            fn write_until(&mut self, total: u64, now: Instant, out: &mut dyn Outbox) {
                self.data.want(total);
                self.drive(now, out);
            }

            fn stop_writing(&mut self) {
                self.data.stop();
            }

            fn on_datagram(&mut self, payload: &[u8], now: Instant, out: &mut dyn Outbox) {
                let mut response = Vec::new();
                let event =
                    receive(&mut self.endpoint, stack_time(now), self.peer, payload, &mut response);
                match event {
                    Some($proto::DatagramEvent::ConnectionEvent(_, event)) => {
                        if let Some((_, connection)) = &mut self.connection {
                            connection.handle_event(event);
                        }
                    }
                    Some($proto::DatagramEvent::NewConnection(incoming)) => {
                        if self.connection.is_some() {
                            self.endpoint.ignore(incoming);
                        } else {
                            match self.endpoint.accept(
                                incoming,
                                stack_time(now),
                                &mut response,
                                None,
                            ) {
                                Ok(connection) => self.connection = Some(connection),
                                Err(error) => self.loss = Some(error.cause.to_string()),
                            }
                        }
                    }
                    Some($proto::DatagramEvent::Response(answer)) => {
                        out.send(&response[..answer.size]);
                    }
                    None => {}
                }
                self.drive(now, out);
            }

            fn on_deadline(&mut self, now: Instant, out: &mut dyn Outbox) {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(stack_time(now));
                    self.drive(now, out);
                }
            }

            fn deadline(&self) -> Instant {
                self.deadline
            }

            fn bytes_read(&self) -> u64 {
                self.data.read
            }

            fn snapshot(&self) -> Snapshot {
                let figures = &self.figures;
                let rtts = figures.rtts();
                let (path, metrics) = &self.path;
                Snapshot {
                    bytes_in_flight: figures.in_flight(),
                    rtt_ns: rtts.map(|[last, _]| last),
                    min_rtt_ns: rtts.map(|[_, least]| least),
                    bytes_acked: figures.bytes_acked(),
                    bytes_written: self.data.written,
                    reductions: figures.reductions(),
                    established: self.established,
                    idle: self.data.next_len() == 0,
                    cwnd_bytes: path.cwnd,
                    ssthresh_bytes: metrics.ssthresh.filter(|bytes| *bytes < u64::MAX),
                    pacing_bps: metrics.pacing_rate.map(|rate| rate.saturating_mul(8)),
                    srtt_ns: rtts.map(|_| path.rtt.as_nanos() as u64),
                    packets_sent: path.sent_packets,
                    packets_lost: path.lost_packets,
                }
            }

            fn take_rtt_ns(&mut self) -> Option<u64> {
                self.figures.take_rtt()
            }

            fn take_loss(&mut self) -> Option<String> {
                self.loss.take()
            }

            fn fault(&self) -> Option<Fault> {
                self.figures.fault().copied()
            }
        }
    };
}

pub(crate) use {configured, connection};
