# Reno. Wrong: the window grows although the application does not use it.
param wrong = 0

on ack {
    if limited or wrong > 0 {
        if slow_start { cwnd = min(cwnd + acked, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }
