# Vegas: keeps from alpha to beta packets in the queue, and asks once per round trip.
# Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8), 1995.

param alpha = 2     # with fewer queued the window grows
param beta = 4      # with more it shrinks
param gamma = 1     # with more slow start ends

state base = 0      # least round-trip time of the connection; 0: none yet
state least = 0     # least one of this round; 0: none yet
state samples = 0

on round {
    # One or two samples are a delayed ACK each: no round-trip time of the network among them.
    if samples > 2 and base > 0 {
        let queued = cwnd * (least - base) / base
        if slow_start {
            if queued > gamma {
                cwnd = min(cwnd, floor(cwnd * base / least) + 1)
                ssthresh = min(ssthresh, cwnd)
            }
        } else if queued > beta {
            cwnd = max(cwnd - 1, 2)
            ssthresh = min(ssthresh, cwnd)
        } else if queued < alpha {
            cwnd = cwnd + 1
        }
    }
    least = 0
    samples = 0
}

on ack {
    if base == 0 or rtt < base { base = rtt }
    if least == 0 or rtt < least { least = rtt }
    samples = samples + 1
    if slow_start {
        cwnd = min(cwnd + acked, ssthresh)
    }
}

on loss {
    ssthresh = max(floor(cwnd / 2), 2)
}

on idle {
    base = 0        # old samples say nothing of the path
    least = 0
    samples = 0
}
