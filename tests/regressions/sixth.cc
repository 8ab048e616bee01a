# Reno. Wrong: each duplicate ACK cuts again, so that the window falls to a sixth.
param wrong = 0

on ack {
    if limited {
        if slow_start { cwnd = min(cwnd + acked, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}

on loss {
    if wrong > 0 { ssthresh = max(cwnd / 6, 2) } else { ssthresh = max(cwnd / 2, 2) }
}
