# Reno. Wrong: every expiry of the timer halves the threshold once more.
param wrong = 0

on ack {
    if limited {
        if slow_start { cwnd = min(cwnd + acked, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }

on timeout {
    if wrong > 0 { ssthresh = max(ssthresh / 2, 2) }
}
