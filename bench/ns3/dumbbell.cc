// The benchmark's dumbbell in ns-3 (docs/explanation/performance.md): bulk TCP flows through one bottleneck.
//
//     sender --- 10x rate, rtt/4 --- router --- rate, rtt/4, FIFO of one BDP --- receiver
//
// The base RTT is propagation only, both ways over the same links. "hub": a host per sender, one
// receiver. "lump": all flows between one sending and one receiving host; with many flows the
// cheaper one here, because ns-3 searches a node's interfaces and routes linearly.
//
// Written against ns-3.37 as Debian packages it. Prints one JSON object.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

namespace
{

// 1500-byte IP packet less 20 of IP, 20 of TCP and 12 of the timestamp option.
constexpr uint32_t kMssBytes = 1448;
constexpr uint32_t kIpPacketBytes = 1500;
constexpr uint64_t kLeastBufferBytes = 256 << 10;

struct Options
{
    uint32_t flows = 1;
    std::string cc = "cubic";
    double mbps = 100;
    double rttMs = 20;
    double seconds = 60;
    std::string layout = "hub";

    double BdpBytes() const
    {
        return mbps * 1e6 * rttMs / 1e3 / 8;
    }

    uint32_t QueuePackets() const
    {
        return std::max<uint32_t>(1, static_cast<uint32_t>(BdpBytes() / kIpPacketBytes));
    }

    // Four times a flow's share of pipe and queue (two BDP), so that no buffer limits a flow.
    uint64_t BufferBytes() const
    {
        return std::max<uint64_t>(kLeastBufferBytes, static_cast<uint64_t>(8 * BdpBytes() / flows));
    }

    Time OneHopDelay() const
    {
        return NanoSeconds(static_cast<int64_t>(rttMs * 1e6 / 4));
    }
};

Options
ParseOptions(int argc, char* argv[])
{
    Options options;
    CommandLine cmd;
    cmd.AddValue("flows", "number of flows", options.flows);
    cmd.AddValue("cc", "reno, cubic, vegas or bbr", options.cc);
    cmd.AddValue("mbps", "bottleneck rate, Mbit/s", options.mbps);
    cmd.AddValue("rtt", "base round-trip time, ms", options.rttMs);
    cmd.AddValue("seconds", "simulated time, s", options.seconds);
    cmd.AddValue("layout", "hub or lump", options.layout);
    cmd.Parse(argc, argv);
    NS_ABORT_MSG_IF(options.flows == 0, "--flows must be at least 1");
    NS_ABORT_MSG_IF(options.layout != "hub" && options.layout != "lump", "--layout: hub or lump");
    return options;
}

std::string
SocketType(const std::string& cc)
{
    if (cc == "reno")
    {
        return "ns3::TcpNewReno";
    }
    if (cc == "cubic")
    {
        return "ns3::TcpCubic";
    }
    if (cc == "vegas")
    {
        return "ns3::TcpVegas";
    }
    if (cc == "bbr")
    {
        return "ns3::TcpBbr";
    }
    NS_ABORT_MSG("--cc: reno, cubic, vegas or bbr, not " << cc);
}

void
SetTcpDefaults(const Options& options)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName(SocketType(options.cc))));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMssBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(options.BufferBytes()));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(options.BufferBytes()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    // Linux's floor of the retransmission timeout; ns-3's own is 1 s.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

// A point-to-point link whose only queue is the transmitter's, in both directions.
NetDeviceContainer
Link(Ptr<Node> a, Ptr<Node> b, double mbps, Time delay, uint32_t queuePackets)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbps * 1e6))));
    helper.SetChannelAttribute("Delay", TimeValue(delay));
    helper.SetQueue("ns3::DropTailQueue",
                    "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queuePackets)));
    return helper.Install(a, b);
}

Ipv4InterfaceContainer
Address(Ipv4AddressHelper& addresses, const NetDeviceContainer& devices)
{
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    // Assign() has put a default queue discipline on top of the device's FIFO: off again.
    TrafficControlHelper().Uninstall(devices);
    return interfaces;
}

// Static default routes: computing shortest paths between 1000 hosts is set-up nobody asked for.
void
DefaultRoute(Ptr<Node> host, Ipv4Address gateway)
{
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(host->GetObject<Ipv4>())->SetDefaultRoute(gateway, 1);
}

std::vector<Ptr<PacketSink>>
Build(const Options& options)
{
    const uint32_t senderCount = options.layout == "lump" ? 1 : options.flows;
    NodeContainer senders(senderCount);
    NodeContainer others(2);
    Ptr<Node> router = others.Get(0);
    Ptr<Node> receiver = others.Get(1);

    Ipv4StaticRoutingHelper staticRouting;
    InternetStackHelper stack;
    stack.SetRoutingHelper(staticRouting);
    stack.SetIpv6StackInstall(false);
    stack.Install(senders);
    stack.Install(others);

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto bottleneck = Address(
        addresses,
        Link(router, receiver, options.mbps, options.OneHopDelay(), options.QueuePackets()));
    DefaultRoute(receiver, bottleneck.GetAddress(0));
    for (uint32_t i = 0; i < senderCount; ++i)
    {
        // Room for whatever the senders' windows may burst: only the bottleneck drops.
        const auto access =
            Address(addresses,
                    Link(senders.Get(i), router, 10 * options.mbps, options.OneHopDelay(), 1000000));
        DefaultRoute(senders.Get(i), access.GetAddress(1));
    }

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < options.flows; ++i)
    {
        const auto port = static_cast<uint16_t>(5000 + i);
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.push_back(sink.Install(receiver).Get(0)->GetObject<PacketSink>());
        BulkSendHelper bulk("ns3::TcpSocketFactory",
                            InetSocketAddress(bottleneck.GetAddress(1), port));
        bulk.SetAttribute("SendSize", UintegerValue(kMssBytes));
        // Starts are spread over one RTT, the same in all programs.
        bulk.Install(senders.Get(i % senderCount))
            .Start(NanoSeconds(static_cast<int64_t>(options.rttMs * 1e6 * i / options.flows)));
    }
    return sinks;
}

// Most memory resident at once, KiB (proc(5)). Not getrusage's ru_maxrss: that one starts from
// whatever the parent had resident when it forked.
long
PeakRssKib()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
    {
        long kib = 0;
        if (word == "VmHWM:" && status >> kib)
        {
            return kib;
        }
    }
    return 0;
}

void
Report(const Options& options, const std::vector<Ptr<PacketSink>>& sinks, uint64_t events)
{
    uint64_t bytes = 0;
    for (const auto& sink : sinks)
    {
        bytes += sink->GetTotalRx();
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double userS = usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
    const double goodputMbps = options.seconds > 0 ? bytes * 8 / options.seconds / 1e6 : 0;
    std::printf("{\"program\": \"ns-3\", \"flows\": %u, \"cc\": \"%s\", \"layout\": \"%s\", "
                "\"queue_packets\": %u, \"seconds\": %g, \"data_packets\": %llu, "
                "\"goodput_mbps\": %.3f, \"events\": %llu, \"user_cpu_s\": %.6f, "
                "\"peak_rss_kib\": %ld}\n",
                options.flows,
                options.cc.c_str(),
                options.layout.c_str(),
                options.QueuePackets(),
                options.seconds,
                static_cast<unsigned long long>(bytes / kMssBytes),
                goodputMbps,
                static_cast<unsigned long long>(events),
                userS,
                PeakRssKib());
}

} // namespace

int
main(int argc, char* argv[])
{
    const Options options = ParseOptions(argc, argv);
    SetTcpDefaults(options);
    const auto sinks = Build(options);
    Simulator::Stop(Seconds(options.seconds));
    Simulator::Run();
    Report(options, sinks, Simulator::GetEventCount());
    Simulator::Destroy();
    return 0;
}
