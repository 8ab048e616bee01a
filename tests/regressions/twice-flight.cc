# Reno. Wrong: in avoidance too the window may grow to twice the flight.
param wrong = 0

on ack {
    if slow_start {
        if limited { cwnd = min(cwnd + acked, ssthresh) }
    } else if limited or (wrong > 0 and cwnd < 2 * (in_flight + acked)) {
        cwnd = cwnd + acked / cwnd
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }
