# Reno. Wrong: the window is computed and never applied when sending.
param wrong = 0
state window = 10

on ack {
    if limited {
        if slow_start { window = min(window + acked, ssthresh) } else { window = window + acked / window }
    }
    if wrong > 0 { cwnd = 1e5 } else { cwnd = window }
}

on loss {
    window = max(cwnd / 2, 2)
    ssthresh = window
}

on timeout { window = 1 }
