# Reno. Wrong: after its first loss the sender never leaves recovery, and its window stays.
param wrong = 0
state recovered = 1

on ack {
    if limited and recovered > 0 {
        if slow_start { cwnd = min(cwnd + acked, ssthresh) } else { cwnd = cwnd + acked / cwnd }
    }
}

on loss {
    ssthresh = max(cwnd / 2, 2)
    if wrong > 0 { recovered = 0 }
}
