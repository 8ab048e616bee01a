# The benchmark's dumbbell in ns-2 (docs/explanation/performance.md): bulk TCP flows through one bottleneck.
#
#     sender --- 10x rate, rtt/4 --- router --- rate, rtt/4, FIFO of one BDP --- receiver
#
# usage: ns dumbbell.tcl FLOWS CC MBPS RTT_MS SECONDS LAYOUT      CC: reno or cubic; LAYOUT: hub or lump
#
# CC reno is Agent/TCP/Sack1, everything else Agent/TCP/Linux with Linux's own module of that name.
# setup_cpu_s is what building all this and the routes took, before the first packet.
# Written against ns-2.35 as Debian packages it. Prints one JSON object to stderr (CPU is
# measured from outside).

if {$argc != 6} {
    puts stderr "usage: ns dumbbell.tcl FLOWS CC MBPS RTT_MS SECONDS LAYOUT"
    exit 2
}
lassign $argv flows cc mbps rtt_ms seconds layout

# 1500-byte IP packet: 40 of IP and TCP, 12 of the timestamp option (which ns-2 adds by itself).
set mss_bytes 1448
set header_bytes 40
set option_bytes 12
set queue_packets [expr {max(1, int($mbps * 1e6 * $rtt_ms / 1e3 / 8 / 1500))}]
set hop_delay [expr {$rtt_ms / 4.0}]ms

# Packet headers that this path uses and no others: smaller packets, as ns-2's manual advises.
remove-all-packet-headers
add-packet-header IP TCP Flags
set sim [new Simulator]
set router [$sim node]
set receiver [$sim node]
$sim duplex-link $router $receiver ${mbps}Mb $hop_delay DropTail
$sim queue-limit $router $receiver $queue_packets
$sim queue-limit $receiver $router 1000000

set sender_count [expr {$layout eq "lump" ? 1 : $flows}]
for {set i 0} {$i < $sender_count} {incr i} {
    set sender($i) [$sim node]
    $sim duplex-link $sender($i) $router [expr {10 * $mbps}]Mb $hop_delay DropTail
    # Room for whatever the senders' windows may burst: only the bottleneck drops.
    $sim queue-limit $sender($i) $router 1000000
    $sim queue-limit $router $sender($i) 1000000
}

Agent/TCP set packetSize_ $mss_bytes
Agent/TCP set tcpip_base_hdr_size_ $header_bytes
Agent/TCP set ts_option_size_ $option_bytes
Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 0.2
Agent/TCP set timestamps_ true
Agent/TCP set tcpTick_ 0.001
Agent/TCPSink set packetSize_ [expr {$header_bytes + $option_bytes}]
Agent/TCPSink/Sack1/DelAck set interval_ 40ms

# Most memory resident at once, KiB (proc(5)).
proc peak_rss_kib {} {
    set file [open /proc/self/status]
    set found [regexp {VmHWM:\s*(\d+)} [read $file] _ kib]
    close $file
    return [expr {$found ? $kib : 0}]
}

# Time on a CPU so far, s (proc(5), schedstat: precise, unlike ticks of user time); 0 where a kernel
# does not tell.
proc cpu_s {} {
    if {[catch {open /proc/self/schedstat} file]} {
        return 0
    }
    set ns [lindex [read $file] 0]
    close $file
    return [expr {$ns / 1e9}]
}

proc started {} {
    global setup_cpu_s
    set setup_cpu_s [cpu_s]
}

proc report {} {
    global setup_cpu_s tcp flows cc layout queue_packets seconds mss_bytes
    set packets 0
    for {set i 0} {$i < $flows} {incr i} {
        # The highest packet acknowledged in order; numbers start at 0, -1 is none.
        incr packets [expr {int([$tcp($i) set ack_]) + 1}]
    }
    set goodput_mbps [expr {$seconds > 0 ? $packets * $mss_bytes * 8 / double($seconds) / 1e6 : 0}]
    # Not to stdout: TCP/Linux chatters there, through a buffer of its own.
    puts stderr "{\"program\": \"ns-2\", \"flows\": $flows, \"cc\": \"$cc\", \"layout\": \"$layout\",\
        \"queue_packets\": $queue_packets, \"seconds\": $seconds, \"data_packets\": $packets,\
        \"goodput_mbps\": [format %.3f $goodput_mbps], \"setup_cpu_s\": $setup_cpu_s,\
        \"peak_rss_kib\": [peak_rss_kib]}"
    exit 0
}

$sim at 0 started
for {set i 0} {$i < $flows} {incr i} {
    if {$cc eq "reno"} {
        set tcp($i) [new Agent/TCP/Sack1]
    } else {
        set tcp($i) [new Agent/TCP/Linux]
        $tcp($i) select_ca $cc
    }
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $sim attach-agent $sender([expr {$i % $sender_count}]) $tcp($i)
    $sim attach-agent $receiver $sink
    $sim connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    # Starts are spread over one RTT, the same in all programs.
    $sim at [expr {$rtt_ms / 1e3 * $i / $flows}] "$ftp start"
}
$sim at $seconds report
$sim run
