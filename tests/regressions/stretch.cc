# Reno. Wrong: an ACK of many packets counts as an ACK of one.
param wrong = 0

on ack {
    if limited {
        let counted = acked
        if wrong > 0 { counted = min(acked, 1) }
        if slow_start { cwnd = min(cwnd + counted, ssthresh) } else { cwnd = cwnd + counted / cwnd }
    }
}

on loss { ssthresh = max(cwnd / 2, 2) }
