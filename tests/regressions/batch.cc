# Reno. Wrong: whole packets are added, and the quotient of an ACK and the window is none.
param wrong = 0

on ack {
    if limited {
        if slow_start {
            cwnd = min(cwnd + acked, ssthresh)
        } else if wrong > 0 {
            cwnd = cwnd + floor(acked / cwnd)
        } else {
            cwnd = cwnd + acked / cwnd
        }
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }
