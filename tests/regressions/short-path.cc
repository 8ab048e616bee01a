# Reno. Wrong: a round trip in units of 4 ms is none on a short path, and something is divided by it.
param wrong = 0

on ack {
    if limited {
        let unit = 1
        if wrong > 0 { unit = floor(min_rtt / 4ms) }
        if slow_start { cwnd = min(cwnd + acked * unit / unit, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }
